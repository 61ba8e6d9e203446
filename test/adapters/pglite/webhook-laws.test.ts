import { keepsWebhookLaws } from '../postgres/kept-laws.ts';

keepsWebhookLaws('PGlite');
