import { keepsLaws } from '../postgres/kept-laws.ts';

keepsLaws('PGlite', { part: 0, parts: 2 });
