export { postgresWebhooks } from './webhooks.ts';
