import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { authority, type Credentials, certificate } from '../test/support/certificates.ts';
import type { Checkout } from './checkout.ts';
import { atFullSpeed, figuresWith, type Load } from './deliveries.ts';
import { TEMPLATE } from './formats.ts';
import { figuresOf, pacedFigures, type Stretch, warmUp } from './pace.ts';
import { background } from './processes.ts';
import type { Figure, Measurement, OpenSection, Peer, Run, Section } from './section.ts';
import { deliveriesOfEach, type SenderOptions, withSender } from './senders.ts';

const LOAD: Load = { warmUp: 10_000, counted: 20_000 };
/** What users have. */
const PACE: readonly Stretch[] = [{ rate: 100, seconds: 8 }];
const PACED = figuresOf(PACE, { p50: '≤ 1.2 ×', p95: '≤ 1.2 ×', cpu: '≤ 1.1 ×' });

/** The figures of `fullSpeedAndPace`. */
export function figuresOfBoth(bars: Readonly<Record<string, string>> = {}): Readonly<Record<string, Figure>> {
    return { ...figuresWith(bars), ...PACED };
}

/** As many deliveries as there can be, and then as many as users have. */
export function fullSpeedAndPace(options: SenderOptions, load: Load, scale: number): Run {
    return () =>
        withSender(options, async (sender) => ({
            ...(await atFullSpeed(sender, options, load, scale)),
            ...(await pacedFigures(sender, PACE, scale, deliveriesOfEach(options))),
        }));
}

/** Attempts a second, the most that an exporter or a deployment may have: far above what each of so many then gets. */
const RATE = 1_000;
const RATED = 10;
/** Of messages whose first try is refused: one of so many. Less than a second later they come again. */
export const REFUSED: Using = { refusesOneOf: 4, host: { settings: { schedule: [1_000] } } };

/** Settings of exporters by what is sent of an event, in place of the event as it is. */
export const FORMATS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    cloudevents: { format: 'cloudevents' },
    slack: { format: 'slack' },
    template: { format: 'template', template: TEMPLATE },
};

type Using = Pick<SenderOptions, 'exporters' | 'host' | 'refusesOneOf' | 'tls'>;

interface Cost {
    readonly what: string;
    readonly using: Using;
    /** The same without it; that of nothing else unless it is given. */
    readonly beside?: Peer;
    /** Where there can be no more: only as many deliveries as users have. */
    readonly isSlow?: boolean;
}

/** What else an event, an exporter or a deployment may have costs, one thing at a time, beside the same sender without it. */
export const overhead: Section = {
    name: 'overhead',
    discarded: 0,

    async open({ own, scale }): Promise<OpenSection> {
        const run = (checkout: Checkout, using: Using, isSlow = false): Run =>
            (isSlow ? paced : fullSpeedAndPace)({ checkout, kind: 'servers', ...using }, LOAD, scale);
        const without: Without = (name, using, isSlow) => ({ name, run: run(own, using, isSlow) });
        const none = without('none', {});
        const measurement = ({ what, using, beside = none, isSlow = false }: Cost): Measurement => ({
            title: `deliveries with ${what}`,
            figures: isSlow ? PACED : figuresOfBoth(),
            scanwire: async (checkout) => run(checkout, using, isSlow),
            peers: async () => [beside],
        });

        const { https, mutual, server, ca } = await securely();
        const tokens = await tokenServer(server);
        const proxy = await background(own, 'proxy');
        const ways: readonly Cost[] = [
            { what: 'OAuth, its token kept', using: { host: { settings: { oauth: oauthOf(tokens.url, ca) } } } },
            { what: 'a proxy', using: { host: { settings: { proxy: { url: `http://127.0.0.1:${proxy.firstLine}` } } } } },
            { what: 'a client certificate', using: mutual, beside: without('https', https) },
        ];
        return {
            measurements: [...costs(without), ...ways].map(measurement),

            async close() {
                await Promise.all([proxy.stop(), tokens.close()]);
            },
        };
    },
};

type Without = (name: string, using: Using, isSlow?: boolean) => Peer;

/** What needs no other server. */
function costs(without: Without): readonly Cost[] {
    const unlimited = without('no rate', {}, true);
    const owners: Using = { exporters: RATED, host: { owners: RATED } };
    const forgetting: Using = { ...REFUSED, host: { ...REFUSED.host, options: { keepResponses: false } } };
    return [
        { what: 'an idempotency key for each event', using: { host: { idempotencyKeys: true } } },
        { what: 'an owner of events and exporter', using: { host: { owners: 1 } } },
        {
            what: `a rate that no exporter reaches, each of ${RATED} with events of its own`,
            using: { ...owners, host: { ...owners.host, settings: { rate: RATE } } },
            beside: without('no rate', owners),
        },
        {
            what: 'a rate of the exporter, which is not reached',
            using: { host: { settings: { rate: RATE } } },
            beside: unlimited,
            isSlow: true,
        },
        {
            what: 'a rate of the deployment, which is not reached',
            using: { host: { options: { rate: RATE } } },
            beside: unlimited,
            isSlow: true,
        },
        {
            what: `answers kept, of a receiver that refuses the first try of one message of ${REFUSED.refusesOneOf}`,
            using: REFUSED,
            beside: without('keepResponses: false', forgetting),
        },
        { what: 'an exporter that gets what becomes of the others', using: { host: { notices: true } } },
        ...Object.entries(FORMATS).map(([format, settings]) => ({
            what: `the format ${format} in place of native`,
            using: { host: { settings } },
        })),
    ];
}

function paced(options: SenderOptions, load: Load, scale: number): Run {
    return () =>
        withSender(options, async (sender) => {
            await warmUp(sender, Math.ceil(load.warmUp * scale));
            return pacedFigures(sender, PACE, scale);
        });
}

function oauthOf(tokenUrl: string, ca: string) {
    return { tokenUrl, clientId: 'bench', clientSecret: 'bench', ca };
}

/** What a sender uses whose receiver is called by https, and one whose receiver asks who calls it; and by what such a server is known. */
export async function securely(): Promise<{
    readonly https: Using;
    readonly mutual: Using;
    readonly server: Credentials;
    readonly ca: string;
}> {
    const root = await authority('Root of the bench');
    const server = await certificate({ name: '127.0.0.1', authority: root });
    const client = await certificate({ name: 'sender.test', authority: root });
    const ca = root.cert;
    const asking = { ca, ...client };
    const clientCertificate = { certificate: client.cert, key: client.key };
    return {
        https: { tls: { receiver: server, asking }, host: { settings: { ca } } },
        mutual: {
            tls: { receiver: { ...server, ca, requestCert: true, rejectUnauthorized: true }, asking },
            host: { settings: { ca, clientCertificate } },
        },
        server,
        ca,
    };
}

/** A token server by https, whose tokens hold longer than a run. */
async function tokenServer(credentials: Credentials): Promise<{ readonly url: string; close(): Promise<void> }> {
    const answer = JSON.stringify({ access_token: 'a'.repeat(40), token_type: 'Bearer', expires_in: 3_600 });
    const server = createServer(credentials, (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(answer));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return {
        url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/token`,

        async close() {
            const closed = once(server, 'close');
            server.close();
            server.closeAllConnections();
            await closed;
        },
    };
}
