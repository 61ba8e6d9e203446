import { keepsLaws } from './kept-laws.ts';

keepsLaws('PostgreSQL');
