import { keepsWebhookLaws } from '../postgres/kept-laws.ts';

keepsWebhookLaws('PGlite', { part: 1, parts: 2 });
