import Joi from 'joi';
import type * as Prometheus from 'prom-client';
import { ScanwireError } from '../../errors.ts';
import { optionalPackage } from '../../optional-packages.ts';
import { checked, objectWith } from '../../schema-validation.ts';
import { within } from '../../within.ts';
import { ACTIVE_STATES } from '../deliveries/delivery-states.ts';
import { BREAKERS, type Breaker, type Overview } from '../exporters/exporter-health.ts';
import type { Webhooks } from '../webhooks.ts';
import type { DeliveryEvent, WebhookEvent } from './emitted-events.ts';

/** The parts of prom-client that are used. */
type Client = Pick<typeof Prometheus, 'Registry' | 'Counter' | 'Gauge' | 'Histogram' | 'collectDefaultMetrics'>;

/** A registry of prom-client, as far as it is used here. */
export interface MetricsRegistry {
    readonly contentType: string;
    metrics(): Promise<string>;
}

/** What metrics are made of. */
export interface MetricsOptions {
    /** Asked at each scrape for what is counted in the store; null while there is nobody to ask. */
    readonly source: () => Pick<Webhooks, 'overview' | 'readiness'> | null;
    /** A registry of the application's own, which it shows itself; one for these metrics alone by default. */
    readonly registry?: MetricsRegistry | undefined;
    /** Whether attempts and certificates have the id of their exporter as a label: as many series as exporters, times outcomes. Default false. */
    readonly perExporter?: boolean | undefined;
    /** Whether memory, processor time, event loop and garbage collection of the process are shown as well. Default false. */
    readonly processMetrics?: boolean | undefined;
    /** Called with the error when the store could not be asked for its counts. */
    readonly onError?: ((error: Error) => void) | undefined;
    /** Milliseconds that only go forward, as `performance.now`. */
    readonly monotonic?: (() => number) | undefined;
}

/** Metrics of a process that publishes or sends; `docs/metrics.md` lists them. */
export interface WebhookMetrics {
    /** Counts what has happened: for `onEvent` of `webhooks()`. */
    hear(event: WebhookEvent): void;
    /** What a scrape gets, and the type of it. */
    text(): Promise<{ readonly text: string; readonly type: string }>;
}

const optionsSchema: Joi.ObjectSchema<MetricsOptions> = Joi.object<MetricsOptions>({
    source: Joi.function().required(),
    registry: objectWith<MetricsRegistry>('metrics'),
    perExporter: Joi.boolean(),
    processMetrics: Joi.boolean(),
    onError: Joi.function(),
})
    // A plugin passes all its options.
    .unknown()
    .required();

/** Seconds. An attempt ends after 15 by default and after 30 at most. */
const DURATIONS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30];
/** Seconds, from what is quick to three days, which is about when the last retry of the default schedule comes. */
const LATENCIES = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 28_800, 86_400, 259_200];

const EXPORTER_STATES: readonly ('stopped' | Breaker)[] = [...BREAKERS, 'stopped'];
const PARTS = ['process', 'store', 'queue'] as const;

/**
 * Metrics in the form of Prometheus.
 *
 * @throws ScanwireError `MISCONFIGURED` without the package prom-client, with the line that installs it.
 */
export async function webhookMetrics(options: MetricsOptions): Promise<WebhookMetrics> {
    checked(optionsSchema, options, { subject: 'webhookMetrics options', code: 'MISCONFIGURED' });
    const client = await optionalPackage('prom-client', 'Metrics', () => import('prom-client'));
    const registry = (options.registry as Prometheus.Registry | undefined) ?? new client.Registry();
    const { count, seen } = withNewNames(() => {
        if (options.processMetrics === true) {
            client.collectDefaultMetrics({ register: registry });
        }
        addGauges(client, registry, options);
        return { count: heardBy(client, registry, options.perExporter === true), seen: certificateGauge(client, registry, options) };
    });
    const hear = (event: WebhookEvent): void => {
        count(event);
        seen(event);
    };
    return { hear, text: async () => ({ text: await registry.metrics(), type: registry.contentType }) };
}

/** Adds metrics, and refuses names that the registry has already with a message that names the option; prom-client's message does not. */
function withNewNames<Made>(add: () => Made): Made {
    try {
        return add();
    } catch (cause) {
        const [, name] = /^A metric with the name (\w+) has already been registered/.exec((cause as Error).message) ?? [];
        if (name === undefined) {
            throw cause;
        }

        const message = `webhookMetrics options: registry must have no metric ${name} yet: each instance needs a registry of its own`;
        throw new ScanwireError('MISCONFIGURED', message, { field: 'registry', cause });
    }
}

function heardBy(client: Client, registry: Prometheus.Registry, perExporter: boolean): (event: WebhookEvent) => void {
    const registers = [registry];
    const accepted = new client.Counter({
        name: 'scanwire_events_accepted_total',
        help: 'Events that were published, by kind',
        labelNames: ['kind'],
        registers,
    });
    const attempts = new client.Counter({
        name: 'scanwire_attempts_total',
        help: 'Attempts, tests included, by outcome',
        labelNames: ['outcome', 'collector', ...(perExporter ? ['exporter'] : [])],
        registers,
    });
    const ended = new client.Counter({
        name: 'scanwire_deliveries_ended_total',
        help: 'Deliveries, tests aside, that were taken, for which no try was left, or that were set aside',
        labelNames: ['state'],
        registers,
    });
    const duration = new client.Histogram({
        name: 'scanwire_attempt_duration_seconds',
        help: 'From the start of an attempt to its end',
        buckets: DURATIONS,
        registers,
    });
    const latency = new client.Histogram({
        name: 'scanwire_delivery_latency_seconds',
        help: 'From the acceptance of an event until a receiver took it; tests aside, and what was interrupted, or replayed after an attempt',
        buckets: LATENCIES,
        registers,
    });

    function heardOfDelivery(event: DeliveryEvent): void {
        if (event.type === 'delivery.poisoned') {
            ended.inc({ state: 'poisoned' });
            return;
        }
        attempts.inc({ outcome: event.code, collector: event.collector, ...(perExporter && { exporter: event.exporterId }) });
        duration.observe(event.duration / 1000);
        if (event.singleAttempt || event.type === 'delivery.failed') {
            return;
        }
        ended.inc({ state: event.type === 'delivery.delivered' ? 'delivered' : 'exhausted' });
        if (event.type === 'delivery.delivered' && event.latency !== null) {
            latency.observe(event.latency / 1000);
        }
    }

    return (event) => {
        if (event.type === 'event.accepted') {
            accepted.inc({ kind: event.kind });
        } else if ('deliveryId' in event) {
            heardOfDelivery(event);
        }
    };
}

/**
 * Milliseconds for which the certificate of a receiver is shown after the last connection. A receiver that gets anything is connected to again
 * every minute; after so long it may be gone.
 */
const CERTIFICATES_FOR = 24 * 60 * 60_000;

/** Issuers that are told apart. A receiver chooses what its certificate says, so that there could be as many as receivers. */
const MAX_ISSUERS = 20;

interface SeenCertificate {
    readonly issuer: string;
    /** In seconds since 1970. */
    readonly end: number;
    /** When it was seen. */
    readonly at: number;
}

/** When the certificates end that receivers have presented to this process. */
function certificateGauge(client: Client, registry: Prometheus.Registry, options: MetricsOptions): (event: WebhookEvent) => void {
    const { perExporter = false, monotonic = () => performance.now() } = options;
    /** By exporter. */
    const seen = new Map<string, SeenCertificate>();

    function forget(): void {
        for (const [exporterId, { at }] of seen) {
            if (monotonic() - at > CERTIFICATES_FOR) {
                seen.delete(exporterId);
            }
        }
    }

    const gauge: Prometheus.Gauge = new client.Gauge({
        name: 'scanwire_receiver_certificate_expiry_timestamp_seconds',
        help: 'The earliest end of a certificate of each issuer, among the receivers that this process has connected to within a day, in seconds since 1970',
        labelNames: perExporter ? ['issuer', 'exporter'] : ['issuer'],
        registers: [registry],
        collect() {
            forget();
            gauge.reset();
            if (perExporter) {
                for (const [exporter, { issuer, end }] of seen) {
                    gauge.set({ issuer, exporter }, end);
                }
            } else {
                for (const [issuer, end] of earliestEnds([...seen.values()])) {
                    gauge.set({ issuer }, end);
                }
            }
        },
    });

    return (event) => {
        // What is refused may say anything of its issuer.
        if ('deliveryId' in event && event.certificate !== undefined && !event.code.startsWith('tls_')) {
            const { issuer, expiresAt } = event.certificate;
            seen.set(event.exporterId, { issuer, end: Date.parse(expiresAt) / 1000, at: monotonic() });
        }
    };
}

/** The earliest end by issuer, those with the most receivers first; `other` stands for all issuers beyond so many. */
function earliestEnds(certificates: readonly SeenCertificate[]): ReadonlyMap<string, number> {
    const byIssuer = new Map<string, { receivers: number; end: number }>();
    for (const { issuer, end } of certificates) {
        const { receivers, end: earliest } = byIssuer.get(issuer) ?? { receivers: 0, end };
        byIssuer.set(issuer, { receivers: receivers + 1, end: Math.min(earliest, end) });
    }

    const ends = new Map<string, number>();
    for (const [issuer, { end }] of [...byIssuer].toSorted(([, a], [, b]) => b.receivers - a.receivers)) {
        const label = ends.size < MAX_ISSUERS ? issuer : 'other';
        ends.set(label, Math.min(end, ends.get(label) ?? end));
    }
    return ends;
}

/** Milliseconds that the store is waited for: a scrape, of ten seconds by default, gets the rest without it. */
const STORE_PATIENCE = 5_000;

function lateStore(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `The store has not said within ${STORE_PATIENCE} ms what it counts`);
}

/** What is counted in the store at each scrape, once for all gauges of it. Without an answer of the store they are absent, and the scrape goes on. */
function addGauges(client: Client, registry: Prometheus.Registry, { source, onError = () => {} }: MetricsOptions): void {
    const counted = shared(async () => {
        try {
            const asked = source()?.overview();
            return asked === undefined ? null : await within(asked, { timeout: STORE_PATIENCE, late: lateStore });
        } catch (error) {
            onError(error as Error);
            return null;
        }
    });
    const readiness = shared(async () => (await source()?.readiness()) ?? null);
    const gauge = (
        name: string,
        help: string,
        labelNames: readonly string[],
        collect: (gauge: Prometheus.Gauge) => Promise<void>,
    ): void => {
        const made: Prometheus.Gauge = new client.Gauge({ name, help, labelNames, registers: [registry], collect: () => collect(made) });
    };
    const countedBy = (part: keyof Overview, states: readonly string[]) => async (gauge: Prometheus.Gauge) => {
        const counts: Readonly<Record<string, number>> | undefined = (await counted())?.[part];
        gauge.reset();
        for (const state of counts === undefined ? [] : states) {
            gauge.set({ state }, counts?.[state] ?? 0);
        }
    };

    gauge('scanwire_deliveries', 'Deliveries that wait or are on their way, by state', ['state'], countedBy('deliveries', ACTIVE_STATES));
    gauge('scanwire_exporters', 'Exporters by state of their breaker, or stopped', ['state'], countedBy('exporters', EXPORTER_STATES));
    gauge('scanwire_sending_processes', 'Processes that send and are alive', [], async (made) => {
        const overview = await counted();
        // Without labels, a gauge that was reset is 0.
        made.set(overview?.sessions ?? Number.NaN);
    });
    gauge('scanwire_ready', '1 while this process, its store and its queue can be used', ['part'], async (made) => {
        const now = await readiness();
        for (const part of PARTS) {
            made.set({ part }, now !== null && (now.ready || now.reasons.every((reason) => reason.part !== part)) ? 1 : 0);
        }
    });
}

/** Lets everybody who asks while an answer is under way share that answer. */
function shared<T>(ask: () => Promise<T>): () => Promise<T> {
    let asking: Promise<T> | null = null;
    return () => {
        asking ??= ask().finally(() => {
            asking = null;
        });
        return asking;
    };
}
