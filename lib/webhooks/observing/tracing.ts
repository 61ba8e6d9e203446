import type * as OpenTelemetry from '@opentelemetry/api';
import Joi from 'joi';
import { hostOf, portOf } from '../../egress/outgoing-url.ts';
import { ScanwireError } from '../../errors.ts';
import { optionalPackage } from '../../optional-packages.ts';
import { checked } from '../../schema-validation.ts';
import type { Claim } from '../deliveries/delivery-store.ts';
import type { AcceptedEvent } from '../events/new-event.ts';
import type { Outcome } from '../outcomes/outcome.ts';

/** The parts of OpenTelemetry's API that are used. */
type Api = Pick<typeof OpenTelemetry, 'trace' | 'context' | 'createContextKey' | 'ROOT_CONTEXT' | 'SpanKind' | 'SpanStatusCode'>;

/** Options of tracing, which all processes of a deployment have in common. */
export interface TracingOptions {
    /** Whether receivers get the header `traceparent`, so that what they do with a message joins the trace. Default false. */
    readonly sendTraceparent?: boolean | undefined;
}

/**
 * Runs a POST in a span of its own.
 *
 * @param url The receiver's URL. The span shows only its host and port.
 * @param send Gets the `traceparent` of the span, null where there is none.
 */
export type Post = (url: string, send: (traceparent: string | null) => Promise<Outcome>) => Promise<Outcome>;

/** Spans for what a process publishes and sends; `docs/observing.md` lists them. */
export interface Tracing {
    readonly options: Required<TracingOptions>;
    /**
     * Runs what publishes events of these kinds, in a span below what the application is doing.
     *
     * @param publish Gets the `traceparent` of the span, null where nobody records it: the attempts then have no spans either.
     */
    publishing<Events extends readonly AcceptedEvent[]>(
        kinds: readonly string[],
        publish: (traceparent: string | null) => Promise<Events>,
    ): Promise<Events>;
    /** Runs an attempt in a span of the trace that its event was published in, if that is known. */
    attempting(claim: Claim, attempt: (post: Post) => Promise<Outcome>): Promise<Outcome>;
}

const optionsSchema: Joi.ObjectSchema<Required<TracingOptions>> = Joi.object({ sendTraceparent: Joi.boolean().default(false) });

/** A POST without a span. */
export const untraced: Post = (_, send) => send(null);

const NAME = 'scanwire';

/**
 * Spans by the tracer that the process has registered with OpenTelemetry; without one nothing is recorded.
 *
 * @throws ScanwireError `MISCONFIGURED` without the package @opentelemetry/api, with the line that installs it.
 */
export async function webhookTracing(options: TracingOptions = {}): Promise<Tracing> {
    const given = checked(optionsSchema, options, { subject: 'webhookTracing options', code: 'MISCONFIGURED' });
    const api = await optionalPackage('@opentelemetry/api', 'Tracing', () => import('@opentelemetry/api'));
    return { options: given, publishing: publishingWith(api), attempting: attemptingWith(api) };
}

function publishingWith({ trace, context, SpanKind, SpanStatusCode }: Api): Tracing['publishing'] {
    return (kinds, publish) => {
        const attributes = {
            ...messaging('publish', 'send', new Set(kinds).size === 1 ? kinds[0] : undefined),
            ...(kinds.length !== 1 && { 'messaging.batch.message_count': kinds.length }),
        };
        const name = ['publish', attributes['messaging.destination.name'] ?? []].flat().join(' ');
        const span = trace.getTracer(NAME).startSpan(name, { kind: SpanKind.PRODUCER, attributes });
        return context.with(trace.setSpan(context.active(), span), async () => {
            try {
                const events = await publish(span.isRecording() ? traceparentOf(span) : null);
                if (events.length === 1) {
                    span.setAttribute('messaging.message.id', (events[0] as AcceptedEvent).eventId);
                }
                return events;
            } catch (error) {
                span.setAttribute('error.type', error instanceof ScanwireError ? error.code : '_OTHER');
                span.setStatus({ code: SpanStatusCode.ERROR });
                throw error;
            } finally {
                span.end();
            }
        });
    };
}

function attemptingWith(api: Api): Tracing['attempting'] {
    const { SpanKind } = api;
    return (claim, attempt) => {
        const parent = spanContextOf(claim.event.traceparent);
        if (parent === null) {
            return api.context.with(unseen(api, api.ROOT_CONTEXT), () => attempt(untraced));
        }

        // This may run inside the context of the request that woke the worker up.
        const published = api.trace.setSpanContext(api.ROOT_CONTEXT, parent);
        const processing = outcomeSpan(api, published, `process ${claim.event.kind}`, SpanKind.CONSUMER, {
            ...messaging('process', 'process', claim.event.kind),
            'messaging.message.id': claim.event.id,
            'scanwire.exporter.id': claim.exporter.id,
            'scanwire.collector': claim.exporter.collector,
            'scanwire.delivery.id': claim.deliveryId,
            'scanwire.attempt': claim.attempt,
        });
        return processing(
            (_, processed) =>
                attempt((url, send) => {
                    const posting = outcomeSpan(api, processed, 'POST', SpanKind.CLIENT, postAttributes(url, claim));
                    return posting((span) => send(traceparentOf(span)), postOutcome);
                }),
            ({ code }) => ({ 'scanwire.outcome': code, ...(code !== 'delivered' && { 'error.type': code }) }),
        );
    };
}

/**
 * A context in which no instrumentation of the application makes spans. Such an instrumentation would write the receiver's whole URL into its
 * span, and send `traceparent` by itself. The key is that of OpenTelemetry's SDK, which its API does not export.
 */
function unseen({ createContextKey }: Api, context: OpenTelemetry.Context): OpenTelemetry.Context {
    return context.setValue(createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING'), true);
}

/** A span that ends with an outcome. What runs in it gets the context for spans below it. */
function outcomeSpan(
    api: Api,
    parent: OpenTelemetry.Context,
    name: string,
    kind: OpenTelemetry.SpanKind,
    attributes: OpenTelemetry.Attributes,
) {
    const { trace, context, SpanStatusCode } = api;
    const span = trace.getTracer(NAME).startSpan(name, { kind, attributes }, parent);
    const below = trace.setSpan(parent, span);
    type Run = (span: OpenTelemetry.Span, below: OpenTelemetry.Context) => Promise<Outcome>;
    return (run: Run, learnt: (outcome: Outcome) => OpenTelemetry.Attributes) =>
        context.with(unseen(api, below), async () => {
            try {
                const outcome = await run(span, below);
                span.setAttributes(learnt(outcome));
                if (outcome.code !== 'delivered') {
                    span.setStatus({ code: SpanStatusCode.ERROR });
                }
                return outcome;
            } finally {
                span.end();
            }
        });
}

function messaging(operation: string, type: string, kind: string | undefined) {
    return {
        'messaging.system': NAME,
        'messaging.operation.name': operation,
        'messaging.operation.type': type,
        ...(kind !== undefined && { 'messaging.destination.name': kind }),
    };
}

/** Attributes of the span of a POST. Path and query are left out, since they may hold secrets. */
function postAttributes(text: string, { attempt }: Claim): OpenTelemetry.Attributes {
    const url = URL.canParse(text) ? new URL(text) : null;
    return {
        'http.request.method': 'POST',
        ...(url !== null && { 'url.scheme': url.protocol.slice(0, -1), 'server.address': hostOf(url), 'server.port': portOf(url) }),
        ...(attempt > 1 && { 'http.request.resend_count': attempt - 1 }),
    };
}

function postOutcome({ code, status }: Outcome): OpenTelemetry.Attributes {
    return {
        ...(status !== null && { 'http.response.status_code': status }),
        ...(code !== 'delivered' && { 'error.type': status === null ? code : String(status) }),
    };
}

/** As W3C Trace Context writes it, 55 characters. */
function traceparentOf(span: OpenTelemetry.Span): string {
    const { traceId, spanId, traceFlags } = span.spanContext();
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function spanContextOf(traceparent: string | undefined): OpenTelemetry.SpanContext | null {
    if (traceparent === undefined) {
        return null;
    }
    const [, traceId, spanId, flags] = traceparent.split('-') as [string, string, string, string];
    return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
