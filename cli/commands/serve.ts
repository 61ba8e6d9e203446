import { type Command, InvalidArgumentError, Option } from 'commander';
import { KEEP_FOR } from '../../lib/webhooks/deliveries/retention.ts';
import { isVendorName, VENDOR_RULE } from '../../lib/webhooks/messages/signature.ts';
import { type Call, performing } from '../command.ts';
import { dataFolder, prepareDataFolder } from '../data-folder.ts';
import { addMetrics, type MetricsAddress } from '../metrics-server.ts';
import { addPooled, addProcessName, perSecond, spanOrForever, wholeNumber } from '../option-values.ts';
import { WrongUsage } from '../output/errors.ts';
import { assertOneStdin } from '../secret-input.ts';
import { addDrainTimeout } from '../until-stopped.ts';

/** What is asked of the servers that others reach. */
export interface ServersOptions {
    readonly host: string;
    readonly port: number;
    /** Seconds, 0 to say nothing of it. */
    readonly hsts: number;
    readonly maxConnections: number;
    readonly maxPerAddress?: number;
    readonly maxWithoutRequest: number;
    /** Of one API key, in a minute. */
    readonly maxRequests?: number;
    /** Indexes that are streamed at once; 32 when absent. */
    readonly maxStreams?: number;
    /** Who gets the description of the API: whoever has a key when absent, anybody, or nobody. */
    readonly openapi?: 'public' | 'off';
    readonly metasploitPort?: number;
    /** Milliseconds for which deliveries are kept that have ended, null for ever; 30 days when absent. */
    readonly keepFor?: number | null;
    /** The name under which messages are sent, `Vendor` when absent. */
    readonly vendor?: string;
    /** Attempts a second of all exporters together; any number when absent. */
    readonly rate?: number;
    readonly pooled?: boolean;
    readonly processName?: string;
    /** Whether what is published and sent has spans; `send`: receivers get `traceparent` too. */
    readonly tracing?: boolean | 'send';
    /** Seconds. */
    readonly drainTimeout: number;
    /** Workspace that imported records enrich. */
    readonly enrich?: string;
}

/** The options, as commander gives them. */
export interface ServeOptions extends ServersOptions {
    readonly tlsCert?: string;
    readonly tlsKey?: string;
    readonly tlsKeyEnv?: string;
    readonly scanDatabaseFile?: string;
    readonly demo?: boolean;
    readonly metrics?: MetricsAddress;
}

export function define(self: Command): void {
    performing(self, serve);
    self.option('--host <host>', 'address or name to listen on', '127.0.0.1')
        .option('--port <port>', 'port of the REST API', wholeNumber(0, 65535), 3790)
        .option('--tls-cert <file>', 'certificate chain in PEM form, read again once a minute; self-signed when absent')
        .option('--tls-key <file>', 'its private key in PEM form, - for stdin')
        .option('--tls-key-env <variable>', 'the same, taken from an environment variable')
        .option('--enrich <workspace>', 'make hosts and services of imported HTTPS scan records in this workspace')
        .option('--hsts <s>', 'seconds for which browsers shall use nothing but https for this host', wholeNumber(0, 63_072_000), 0)
        .option('--max-connections <n>', 'connections at once on each port', wholeNumber(1, 1_000_000), 8192)
        .option(
            '--max-per-address <n>',
            'connections at once of one address on each port, IPv6 by /64; not limited unless given',
            wholeNumber(1, 1_000_000),
        )
        .option(
            '--max-without-request <n>',
            'TLS connections at once on each port from which no request has come yet',
            wholeNumber(1, 1_000_000),
            1000,
        )
        .option(
            '--max-requests <n>',
            'requests of one API key to rest_api/v2 in a minute; not limited unless given',
            wholeNumber(1, 1_000_000),
        )
        .option(
            '--max-streams <n>',
            'indexes, lists and requests that call MCP tools that are answered at once; 32 unless given',
            wholeNumber(1, 10_000),
        )
        .addOption(
            new Option('--openapi <access>', 'description of the API for anybody or nobody; for whoever has a key unless given').choices([
                'public',
                'off',
            ]),
        )
        .option(
            '--scan-database-file <file>',
            'read the inventory from the scan database whose URL is in this file, - for stdin, or in SCAN_DATABASE_URL',
        )
        .option('--metasploit-port <port>', 'port of its own for clients of the Metasploit data service', wholeNumber(1, 65535))
        .option(
            '--keep-for <span>',
            'how long to keep deliveries that have ended, such as 90d, or forever; 30d unless given',
            spanOrForever(KEEP_FOR.min),
        )
        .option('--vendor <name>', 'name under which messages are sent, as in X-Acme-Event; Vendor unless given', vendorName)
        .option('--rate <n/s>', 'attempts a second, of all exporters together; not limited unless given', perSecond)
        .addOption(new Option('--tracing [receivers]', 'spans by OpenTelemetry; with send, receivers get traceparent').choices(['send']))
        .option('--demo', 'import a scan, make a key, deliver a sample investigation to a receiver of its own');
    addMetrics(self);
    addPooled(self);
    addProcessName(self);
    addDrainTimeout(self);
}

async function serve(call: Call): Promise<undefined> {
    assertOneStdin(call.options);
    assertPerAddressFits(call.options as unknown as ServeOptions);
    const folder = dataFolder(call.data);
    await prepareDataFolder(folder);
    // Half a second of loading, which what is wrong so far need not wait for.
    const server = await import('../serve-process.ts');
    return await server.serve(folder, call);
}

function assertPerAddressFits({ maxConnections, maxPerAddress = 1 }: ServeOptions): void {
    if (maxPerAddress > maxConnections) {
        throw new WrongUsage('--max-per-address must not exceed --max-connections', 'max-per-address');
    }
}

function vendorName(text: string): string {
    if (!isVendorName(text)) {
        throw new InvalidArgumentError(`It ${VENDOR_RULE}.`);
    }

    return text;
}
