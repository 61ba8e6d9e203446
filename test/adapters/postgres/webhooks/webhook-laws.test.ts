import { keepsWebhookLaws } from '../kept-laws.ts';

keepsWebhookLaws('PostgreSQL');
