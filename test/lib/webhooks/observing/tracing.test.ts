import { randomBytes } from 'node:crypto';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
    AlwaysOffSampler,
    BasicTracerProvider,
    InMemorySpanExporter,
    type ReadableSpan,
    type Sampler,
    SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import { keyRing } from '../../../../lib/keys/key-ring.ts';
import type { TraceStore } from '../../../../lib/webhooks/observing/trace-store.ts';
import { type TracingOptions, webhookTracing } from '../../../../lib/webhooks/observing/tracing.ts';
import type { WebhookStores, WebhooksOptions } from '../../../../lib/webhooks/options.ts';
import { newProgress, type Outcome, outcomeOf } from '../../../../lib/webhooks/outcomes/outcome.ts';
import type { Message } from '../../../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../../../lib/webhooks/webhooks.ts';

const RING = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
const ALERT = { name: 'alert_raised', schema: Joi.object({ text: Joi.string() }) };
const RECEIVER = 'https://192.0.2.7:8443/services/secret-path?token=secret-query';

/** What ends here, recorded in memory. */
function recorded(t: Test, sampler?: Sampler): InMemorySpanExporter {
    const spans = new InMemorySpanExporter();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(
        new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)], ...(sampler !== undefined && { sampler }) }),
    );
    t.teardown(() => {
        trace.disable();
        context.disable();
    });
    return spans;
}

const outcome = (status: number): Outcome =>
    outcomeOf({ code: status < 300 ? 'delivered' : 'server_error', status, detail: 'As told', retryAfter: null }, newProgress(), 1);

interface Setting {
    readonly own: Webhooks;
    readonly stores: WebhookStores;
    readonly sent: Message[];
    readonly errors: Error[];
    advance(milliseconds: number): void;
}

/** A process with one exporter, whose receiver answers with these statuses, the last one for ever. */
async function setting(t: Test, statuses: readonly number[], options: Partial<WebhooksOptions> = {}): Promise<Setting> {
    let offset = 0;
    const sent: Message[] = [];
    const errors: Error[] = [];
    const queue = memoryQueue();
    const stores = memoryWebhooks({ clock: () => new Date(Date.now() + offset) });
    const own = webhooks({
        ...stores,
        queue,
        keyRing: RING,
        guard: egressGuard({ allow: ['192.0.2.0/24'] }),
        sender: {
            attemptTimeout: 2_000,
            async send(message) {
                // As an instrumentation of the application's does for each request.
                if (options.tracing != null) {
                    trace.getTracer('instrumentation').startSpan(`POST ${RECEIVER}`).end();
                }
                if (message.newConnection === true) {
                    return outcome(204);
                }
                const index = sent.push(message) - 1;
                return outcome(statuses[Math.min(index, statuses.length - 1)] as number);
            },
            close: async () => {},
        },
        kinds: [ALERT],
        monotonic: () => performance.now() + offset,
        random: () => 0.5,
        onError: (error) => errors.push(error),
        ...options,
    });
    await own.start();
    await own.work(['default']);
    t.teardown(async () => {
        await own.close();
        await queue.close();
    });
    const { exporter } = await own.exporters.create({ url: RECEIVER, headers: [['Authorization', 'Bearer secret-value']] });
    await own.exporters.start(exporter.id);
    return {
        own,
        stores,
        sent,
        errors,
        advance(milliseconds) {
            offset += milliseconds;
        },
    };
}

/** Its spans once there are so many, by their names. */
async function ended(spans: InMemorySpanExporter, count: number): Promise<Map<string, ReadableSpan[]>> {
    await until(() => spans.getFinishedSpans().length >= count);
    const byName = new Map<string, ReadableSpan[]>();
    for (const span of spans.getFinishedSpans()) {
        byName.set(span.name, [...(byName.get(span.name) ?? []), span]);
    }
    return byName;
}

function one(spans: Map<string, ReadableSpan[]>, name: string, index = 0): ReadableSpan {
    return spans.get(name)?.[index] as ReadableSpan;
}

function parentOf(span: ReadableSpan): string | undefined {
    return span.parentSpanContext?.spanId;
}

/** Publishes in a request of the application. */
async function inRequest<T>(act: () => Promise<T>): Promise<T> {
    return await trace.getTracer('host').startActiveSpan('GET /', async (span) => {
        try {
            return await act();
        } finally {
            span.end();
        }
    });
}

async function traced(options: TracingOptions = {}) {
    return { tracing: await webhookTracing(options) };
}

t.test('leads from the request of the application to the attempt, and tells no secret', async (t) => {
    const spans = recorded(t);
    const { own, sent } = await setting(t, [204], await traced());
    const { eventId, deliveries } = await inRequest(() => own.publish('alert_raised', { text: 'secret-body' }));
    const all = await ended(spans, 4);
    const [publish, process, post] = ['publish alert_raised', 'process alert_raised', 'POST'].map((name) => one(all, name));
    t.same(
        [publish, process, post].map((span) => parentOf(span as ReadableSpan)),
        [one(all, 'GET /'), publish, process].map((span) => span?.spanContext().spanId),
    );
    t.same([publish?.kind, process?.kind, post?.kind], [SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT]);
    t.same(publish?.attributes, {
        'messaging.system': 'scanwire',
        'messaging.operation.name': 'publish',
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'alert_raised',
        'messaging.message.id': eventId,
    });
    t.match(process?.attributes, { 'scanwire.delivery.id': deliveries[0], 'scanwire.attempt': 1, 'scanwire.outcome': 'delivered' });
    t.same(post?.attributes, {
        'http.request.method': 'POST',
        'url.scheme': 'https',
        'server.address': '192.0.2.7',
        'server.port': 8443,
        'http.response.status_code': 204,
    });
    t.notMatch(JSON.stringify(spans.getFinishedSpans().map(({ attributes, name }) => [name, attributes])), /secret|Bearer/);
    t.notOk(
        sent[0]?.headers.some(([name]) => name === 'traceparent'),
        'sent on without being asked',
    );
});

t.test('finds the trace again for a retry, and shows failures', async (t) => {
    const spans = recorded(t);
    const { own, sent, advance } = await setting(t, [503, 204], await traced({ sendTraceparent: true }));
    await own.publish('alert_raised', {});
    await ended(spans, 3);
    await until(async () => (await own.deliveries.list()).every(({ kind, state }) => kind === 'test' || state === 'pending'));
    advance(5_000);
    const all = await ended(spans, 5);
    const publish = one(all, 'publish alert_raised');
    const [failed, retried] = [0, 1].map((index) => one(all, 'process alert_raised', index));
    t.same(
        [failed, retried].map((span) => parentOf(span as ReadableSpan)),
        [publish, publish].map((span) => span.spanContext().spanId),
    );
    t.equal(failed?.status.code, SpanStatusCode.ERROR);
    t.match(failed?.attributes, { 'error.type': 'server_error', 'scanwire.outcome': 'server_error' });
    t.match(one(all, 'POST').attributes, { 'error.type': '503', 'http.response.status_code': 503 });
    t.equal(one(all, 'POST').attributes['http.request.resend_count'], undefined);
    t.match(one(all, 'POST', 1).attributes, { 'http.request.resend_count': 1 });
    t.same(
        sent.map(({ headers }) => new Map(headers).get('traceparent')),
        [0, 1].map((index) => {
            const { traceId, spanId } = one(all, 'POST', index).spanContext();
            return `00-${traceId}-${spanId}-01`;
        }),
    );
});

t.test('finds the trace of each retry that is read together with others', async (t) => {
    const spans = recorded(t);
    const { own, stores, advance } = await setting(t, [503, 503, 204], await traced());
    const traces = stores.deliveries.traces as TraceStore;
    const { of } = traces;
    const read: number[] = [];
    Object.assign(traces, {
        of: (eventIds: readonly string[]) => {
            read.push(eventIds.length);
            return of(eventIds);
        },
    });
    await own.publish('alert_raised', { text: 'one' });
    await own.publish('alert_raised', { text: 'other' });
    await until(async () => (await own.deliveries.list()).every(({ kind, state }) => kind === 'test' || state === 'pending'));
    read.length = 0;
    advance(5_000);
    const all = await ended(spans, 10);
    const attempts = all.get('process alert_raised') as ReadableSpan[];
    for (const publish of all.get('publish alert_raised') as ReadableSpan[]) {
        const own = attempts.filter((span) => parentOf(span) === publish.spanContext().spanId);
        t.same(
            own.map(({ attributes }) => attributes['scanwire.attempt']),
            [1, 2],
        );
    }
    t.strictSame(read, [2]);
});

t.test('keeps traces in the statement that accepts their events', async (t) => {
    const spans = recorded(t);
    const { own, stores } = await setting(t, [204], await traced());
    const traces = stores.deliveries.traces as TraceStore;
    let kept = 0;
    Object.assign(traces, {
        keep: async () => {
            kept += 1;
        },
    });
    const { eventId } = await own.publish('alert_raised', {});
    const many = await own.publishAll([
        { kind: 'alert_raised', body: {} },
        { kind: 'alert_raised', body: {} },
    ]);
    const [one, ...others] = [eventId, ...many.map((event) => event.eventId)] as const;
    const all = await ended(spans, 5);
    const of = await traces.of([one, ...others]);
    const ids = (all.get('publish alert_raised') as ReadableSpan[]).map((span) => span.spanContext().spanId);
    t.same(
        [one, ...others].map((id) => of.get(id)?.split('-')[2]),
        [ids[0], ids[1], ids[1]],
    );
    t.equal(kept, 0, 'and in none of its own');
});

t.test('shows a batch as one step, and what refuses a publish', async (t) => {
    const spans = recorded(t);
    const { own } = await setting(t, [204], await traced());
    await own.publishAll([
        { kind: 'alert_raised', body: {} },
        { kind: 'alert_raised', body: {} },
    ]);
    const all = await ended(spans, 5);
    t.match(one(all, 'publish alert_raised').attributes, { 'messaging.batch.message_count': 2 });
    t.equal(all.get('process alert_raised')?.length, 2);

    await own.publish('alert_raised', { text: 'one' }, { idempotencyKey: 'k' });
    const refused = own.publish('alert_raised', { text: 'other' }, { idempotencyKey: 'k' });
    await t.rejects(refused, { code: 'CONFLICT' });
    const publishes = (await ended(spans, 9)).get('publish alert_raised') as ReadableSpan[];
    t.match(publishes.at(-1)?.attributes, { 'error.type': 'CONFLICT' });
    t.equal(publishes.at(-1)?.status.code, SpanStatusCode.ERROR);
});

t.test('keeps nothing and shows no attempt where the publish was not sampled', async (t) => {
    const spans = recorded(t, new AlwaysOffSampler());
    const { own, sent, stores } = await setting(t, [204], await traced({ sendTraceparent: true }));
    const { eventId } = await own.publish('alert_raised', {});
    await until(() => sent.length > 0);
    t.same(await stores.deliveries.traces?.of([eventId]), new Map());
    t.same(spans.getFinishedSpans(), []);
    t.notOk(sent[0]?.headers.some(([name]) => name === 'traceparent'));
});

t.test('keeps nothing where tracing is off', async (t) => {
    const spans = recorded(t);
    const { own, sent, stores } = await setting(t, [204]);
    const { eventId } = await inRequest(() => own.publish('alert_raised', {}));
    await until(() => sent.length > 0);
    t.same(await stores.deliveries.traces?.of([eventId]), new Map());
    t.same((await ended(spans, 1)).size, 1);
});

t.test('delivers all the same while traces can neither be kept nor read', async (t) => {
    recorded(t);
    const broken: TraceStore = {
        keptByAccept: false,
        keep: () => Promise.reject(new ScanwireError('UNAVAILABLE', 'The store keeps no traces now')),
        of: () => Promise.reject(new ScanwireError('UNAVAILABLE', 'The store reads no traces now')),
    };
    const { own, stores, sent, errors, advance } = await setting(t, [503, 204], await traced());
    Object.assign(stores.deliveries.traces as TraceStore, broken);
    await own.publish('alert_raised', {});
    await until(async () => (await own.deliveries.list()).every(({ kind, state }) => kind === 'test' || state === 'pending'));
    advance(5_000);
    await until(() => sent.length === 2);
    t.match(
        errors.map(({ message }) => message),
        [/keeps no traces/, /reads no traces/],
    );
});

t.test('waits for no store that says nothing of traces, be it in a transaction of the application', async (t) => {
    recorded(t);
    const { own, stores, sent, errors, advance } = await setting(t, [503, 204], await traced());
    const silent = (): Promise<never> => new Promise(() => {});
    Object.assign(stores.deliveries.traces as TraceStore, { keptByAccept: false, keep: silent, of: silent });
    await own.publish('alert_raised', {});
    await until(async () => (await own.deliveries.list()).every(({ kind, state }) => kind === 'test' || state === 'pending'));
    advance(5_000);
    await until(() => sent.length === 2);
    t.match(
        errors.map(({ message }) => message),
        [/No result within 500 ms/],
    );
});

t.test('leaves an own header of the exporter as it is', async (t) => {
    recorded(t);
    const { own, sent } = await setting(t, [204], await traced({ sendTraceparent: true }));
    const { exporter } = await own.exporters.create({ url: RECEIVER, headers: [['Traceparent', 'of-its-own']] });
    await own.exporters.start(exporter.id);
    await own.publish('alert_raised', {});
    await until(() => sent.length === 2);
    const values = sent.flatMap(({ headers }) =>
        headers.filter(([name]) => name.toLowerCase() === 'traceparent').map(([, value]) => value),
    );
    t.equal(values.length, 2);
    t.ok(values.includes('of-its-own'));
});

t.test('makes the deployment have what it asks for in common', async (t) => {
    const { stores } = await setting(t, [204], await traced({ sendTraceparent: true }));
    t.same((await stores.settings.read()).settings?.tracing, { sendTraceparent: true });
});

t.test('refuses options that it does not know', async (t) => {
    await t.rejects(webhookTracing({ sendTraceparent: 'yes' as never }), { code: 'MISCONFIGURED', message: /sendTraceparent/ });
});

t.test('a worker without the tracing of its host refuses to start: its messages would lack traceparent', async (t) => {
    const { stores } = await setting(t, [204], { tracing: await webhookTracing({ sendTraceparent: true }) });
    const worker = webhooks({
        ...stores,
        queue: memoryQueue(),
        keyRing: RING,
        guard: egressGuard({ allow: ['192.0.2.0/24'] }),
        sender: { attemptTimeout: 2_000, send: async () => outcome(204), close: async () => {} },
        kinds: [ALERT],
        role: 'worker',
    });
    t.teardown(() => worker.close());
    await t.rejects(worker.start(), {
        code: 'MISCONFIGURED',
        field: 'tracing',
        message: /tracing is not set here and .*sendTraceparent.* in the store/,
    });
});
