import type { Server } from '@hapi/hapi';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { plugin as metrics } from 'scanwire/metrics';

/** More often than Prometheus asks by itself, so that short runs have their share of it. */
const SCRAPE_EVERY = 1_000;

/** Takes what an SDK has batched, as if it had been sent. */
const nowhere: SpanExporter = {
    export: (_, done) => done({ code: 0 }),
    shutdown: async () => {},
};

/** Records every span of this process. */
export function recordSpans(): void {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] }));
}

/** Shows metrics of the exporter of a server, and asks for them all the time. */
export async function scrapeMetrics(server: Server): Promise<void> {
    await server.register({ plugin: metrics, options: { auth: false, processMetrics: true } });
    const scrape = async (): Promise<void> => {
        const { statusCode, payload } = await server.inject('/metrics');
        if (statusCode !== 200 || !payload.includes('scanwire_attempts_total')) {
            throw new Error(`The metrics were answered with ${statusCode}: ${payload.slice(0, 500)}`);
        }
    };
    setInterval(() => void scrape(), SCRAPE_EVERY).unref();
}
