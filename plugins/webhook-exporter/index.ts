export type { WebhookExporterOptions } from './options.ts';
export { plugin, type WebhookExporterApi } from './plugin.ts';
