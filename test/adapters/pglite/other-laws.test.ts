import { keepsLaws } from '../postgres/kept-laws.ts';

keepsLaws('PGlite', { part: 1, parts: 2 });
