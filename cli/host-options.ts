import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ScanwireError } from '../lib/errors.ts';
import { isObject } from '../lib/schema-validation.ts';
import type { WebhookExporterOptions } from '../plugins/webhook-exporter/options.ts';

/** The host's options, as far as a file says them; what they lack comes from the environment. */
export type HostOptions = Partial<WebhookExporterOptions>;

/** What the module of `--config` says. @throws ScanwireError `MISCONFIGURED`. */
export async function hostOptions(file: string): Promise<HostOptions> {
    let config: unknown;
    try {
        ({ default: config } = (await import(pathToFileURL(resolve(file)).href)) as { default?: unknown });
    } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new ScanwireError('MISCONFIGURED', `Cannot load ${file}: ${reason}`, { field: 'config', cause });
    }

    if (!isObject(config)) {
        throw new ScanwireError('MISCONFIGURED', `The default export of ${file} must be the options of the host`, { field: 'config' });
    }

    return config;
}
