import type { Command } from 'commander';
import { packageProblem } from '../lib/optional-packages.ts';
import type { MetricsOptions, WebhookMetrics } from '../lib/webhooks/observing/metrics.ts';
import type { Readiness } from '../lib/webhooks/observing/readiness.ts';
import { commander } from './command.ts';

/** Where metrics are served. */
export interface MetricsAddress {
    readonly host: string;
    /** 0 for any that is free. */
    readonly port: number;
}

/** The option `--metrics`, of `serve` and `worker`. */
export function addMetrics(self: Command): void {
    self.option('--metrics <[address:]port>', 'serve health and metrics there, to anybody; address 127.0.0.1 by default', metricsAddress);
}

/** `9464`, `0.0.0.0:9464`, `[::]:9464`. */
export function metricsAddress(text: string): MetricsAddress {
    const colon = text.lastIndexOf(':');
    const port = text.slice(colon + 1);
    const host = colon === -1 ? '127.0.0.1' : text.slice(0, colon);
    const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535 || bare === '') {
        throw new commander.InvalidArgumentError('It must be a port, or an address and a port like 0.0.0.0:9464.');
    }

    return { host: bare, port: Number(port) };
}

/** Metrics and the server that shows them. */
export interface MetricsServer extends Pick<WebhookMetrics, 'hear'> {
    readonly uri: string;
    stop(): Promise<void>;
}

/** Scrapers and supervisors are few. */
const MAX_CONNECTIONS = 64;

const UNREADY: Readiness = { ready: false, reasons: [] };

/**
 * Serves `/health/live` and `/health/ready`, and `/metrics` where prom-client is installed; `onError` is told where it is not.
 *
 * @throws ScanwireError `CONFLICT` when it cannot listen.
 */
export async function startMetrics(
    { host, port }: MetricsAddress,
    options: Pick<MetricsOptions, 'source'> & { readonly onError: (error: Error) => void },
): Promise<MetricsServer> {
    // The option alone, which every start of a command with it has, needs none of it.
    const [{ builtServer, uriOf }, { protect }, { webhookMetrics }, { healthRoutes }, { metricsRoute }, { listenError }] =
        await Promise.all([
            import('./built-server.ts'),
            import('../lib/protect/connections.ts'),
            import('../lib/webhooks/observing/metrics.ts'),
            import('../plugins/health.ts'),
            import('../plugins/metrics/index.ts'),
            import('./output/errors.ts'),
        ]);
    // Supervisors need health, whoever scrapes.
    const problem = packageProblem('prom-client', 'GET /metrics');
    const metrics = problem === null ? await webhookMetrics({ ...options, processMetrics: true }) : null;
    if (problem !== null) {
        options.onError(problem);
    }
    const security = { hsts: false, noSniff: true, xframe: 'deny', xss: false, noOpen: false } as const;
    const server = builtServer({ host, port, debug: false, routes: { security } }, 'metrics');
    protect(server.listener, { maxConnections: MAX_CONNECTIONS });
    server.route([
        ...(metrics === null ? [] : [metricsRoute(metrics, '/metrics', false)]),
        ...healthRoutes(async () => (await options.source()?.readiness()) ?? UNREADY),
    ]);
    try {
        await server.start();
    } catch (error) {
        await server.stop();
        throw listenError(error, host, port, '--metrics');
    }
    return { hear: metrics?.hear ?? (() => {}), uri: uriOf(server), stop: () => server.stop({ timeout: 100 }) };
}
