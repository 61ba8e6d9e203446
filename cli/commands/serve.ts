import type { Command } from 'commander';
import { performing, wholeNumber } from '../command.ts';

export function define(self: Command): void {
    performing(self, async (call) => {
        const { serve } = await import('../serve.ts');
        await serve(call);
        return undefined;
    });
    self.option('--host <host>', 'address or name to listen on', '127.0.0.1')
        .option('--port <port>', 'port of the REST API', wholeNumber(0, 65535), 3790)
        .option('--tls-cert <file>', 'certificate chain in PEM form; self-signed when absent')
        .option('--tls-key <file>', 'its private key in PEM form')
        .option('--enrich <workspace>', 'make hosts and services of imported HTTPS scan records in this workspace')
        .option('--demo', 'import a scan, make a key, deliver a sample investigation to a receiver of its own');
}
