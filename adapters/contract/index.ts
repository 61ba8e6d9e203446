export { deliveryQueueContract } from './delivery-queue.ts';
export { webhookStoresContract } from './webhooks.ts';
