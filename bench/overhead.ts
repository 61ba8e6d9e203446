import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { authority, type Credentials, certificate } from '../test/support/certificates.ts';
import type { Checkout } from './checkout.ts';
import { figuresWith, fullSpeed, type Load } from './deliveries.ts';
import { background } from './processes.ts';
import type { Measurement, Peer, Section } from './section.ts';
import type { SenderOptions } from './senders.ts';

const LOAD: Load = { warmUp: 10_000, counted: 20_000 };
/** Attempts a second, the most that an exporter may have: far above what each of so many then gets. */
const RATE = 1_000;
const RATED = 10;

type Using = Pick<SenderOptions, 'exporters' | 'host' | 'tls'>;

/** What else an event or an exporter may have costs, one thing at a time, beside the same sender without it. */
export const overhead: Section = {
    name: 'overhead',
    discarded: 0,

    async open({ own, scale }) {
        const run = (checkout: Checkout, using: Using) => fullSpeed({ checkout, kind: 'servers', ...using }, LOAD, scale);
        const without = (name: string, using: Using): Peer => ({ name, run: run(own, using) });
        const cost = (what: string, using: Using, beside: Peer): Measurement => ({
            title: `deliveries with ${what}`,
            figures: figuresWith({}),
            scanwire: async (checkout) => run(checkout, using),
            peers: async () => [beside],
        });

        const { https, mutual, server, ca } = await securely();
        const tokens = await tokenServer(server);
        const oauth = { tokenUrl: tokens.url, clientId: 'bench', clientSecret: 'bench', ca };
        const proxy = await background(own, 'proxy');

        const none = without('none', {});
        const owners: Using = { exporters: RATED, host: { owners: RATED } };
        const rated: Using = { ...owners, host: { ...owners.host, settings: { rate: RATE } } };
        return {
            measurements: [
                cost('an idempotency key for each event', { host: { idempotencyKeys: true } }, none),
                cost('an owner of events and exporter', { host: { owners: 1 } }, none),
                cost(`a rate that no exporter reaches, each of ${RATED} with events of its own`, rated, without('no rate', owners)),
                cost('OAuth, its token kept', { host: { settings: { oauth } } }, none),
                cost('a proxy', { host: { settings: { proxy: { url: `http://127.0.0.1:${proxy.firstLine}` } } } }, none),
                cost('a client certificate', mutual, without('https', https)),
            ],

            async close() {
                await Promise.all([proxy.stop(), tokens.close()]);
            },
        };
    },
};

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
