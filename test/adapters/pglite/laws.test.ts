import { keepsLaws } from '../postgres/kept-laws.ts';

keepsLaws('PGlite');
