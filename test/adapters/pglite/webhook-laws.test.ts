import { keepsWebhookLaws } from '../postgres/kept-laws.ts';

keepsWebhookLaws('PGlite', { part: 0, parts: 2 });
