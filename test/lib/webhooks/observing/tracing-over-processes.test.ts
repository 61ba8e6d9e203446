import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import t, { type Test } from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { type TracingOptions, webhookTracing } from '../../../../lib/webhooks/observing/tracing.ts';
import { embedding } from '../../../support/embedding-host.ts';
import { type EndedSpan, instrumentation } from '../../../support/instrumentation.ts';
import { investigation } from '../../../support/investigation.ts';
import { ended, linesOf, nextJson, startScanwire } from '../../../support/scanwire.ts';

const KIND = 'idr_investigation_created';

/** What this process, the host, has ended. */
function recorded(t: Test): InMemorySpanExporter {
    const spans = new InMemorySpanExporter();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
    t.teardown(() => {
        trace.disable();
        context.disable();
    });
    return spans;
}

/** A receiver that keeps the headers of the messages of events. */
async function receiver(t: Test) {
    const got: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
        if (request.headers['x-vendor-event'] === KIND) {
            got.push(request.headers);
        }
        request.resume();
        response.writeHead(204).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, got };
}

/** Publishes in this process, inside a span of the application's, what a worker sends: the spans of both, and the headers that came. */
async function sentByAWorker(t: Test, options: TracingOptions) {
    const ofTheHost = recorded(t);
    const { url, got } = await receiver(t);
    const application = await embedding(t);
    const { server } = await application.host({ tracing: await webhookTracing(options) });
    const { NODE_OPTIONS, spans } = instrumentation(t.testdir());
    const worker = startScanwire(['worker', '--collector', 'default', '--json'], { env: { ...application.env, NODE_OPTIONS } });
    t.teardown(() => worker.kill('SIGKILL'));
    await nextJson(worker, linesOf(worker));

    const { exporters, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url });
    await exporters.start(exporter.id);
    await trace.getTracer('host').startActiveSpan('GET /', async (span) => {
        await publish(KIND, investigation);
        span.end();
    });
    const named = (name: string): EndedSpan | undefined => spans().find((span) => span.name === name);
    await until(() => named(`process ${KIND}`) !== undefined);
    t.equal(await ended(worker, 'SIGTERM'), 0);

    const inHost = ofTheHost.getFinishedSpans();
    const inWorker = spans().map(({ name }) => name);
    t.strictSame(
        [inHost.map(({ name }) => name).toSorted(), inWorker],
        [
            ['GET /', `publish ${KIND}`],
            ['POST', `process ${KIND}`],
        ],
    );
    const [request, published] = ['GET /', `publish ${KIND}`].map((name) => inHost.find((span) => span.name === name) as ReadableSpan);
    return { request, published, processed: named(`process ${KIND}`), posted: named('POST'), got };
}

t.test('leads from the request in the host to the attempt in a worker, and on to the receiver who is to be told', async (t) => {
    const { request, published, processed, posted, got } = await sentByAWorker(t, { sendTraceparent: true });
    const traceId = request?.spanContext().traceId;
    t.equal(published?.parentSpanContext?.spanId, request?.spanContext().spanId);
    t.match(processed, { traceId, parentId: published?.spanContext().spanId });
    t.match(posted, { traceId, parentId: processed?.spanId });
    t.strictSame(
        got.map(({ traceparent }) => traceparent),
        [`00-${traceId}-${posted?.spanId}-01`],
    );
});

t.test('leads to the attempt in a worker, and tells the receiver nothing unless asked to', async (t) => {
    const { published, processed, got } = await sentByAWorker(t, {});
    t.equal(processed?.parentId, published?.spanContext().spanId);
    t.strictSame(
        got.map(({ traceparent }) => traceparent),
        [undefined],
    );
});
