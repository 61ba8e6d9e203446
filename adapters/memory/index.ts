export { memoryQueue } from './delivery-queue.ts';
export { memoryWebhooks } from './webhooks.ts';
