import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import { egressGuard } from '../../lib/egress/guard.ts';
import { type HttpSenderOptions, httpSender, type Sender } from '../../lib/webhooks/sending/http-sender.ts';
import { authority, type Credentials, certificate } from './certificates.ts';

/** The root of every {@link secureServer}. */
export const ROOT: Credentials = await authority('Private root');
const SERVER = await certificate({ authority: ROOT });

/** A server with a certificate of {@link ROOT} for `good.test`. @returns Its origin. */
export async function secureServer(t: Test, serve: RequestListener): Promise<string> {
    const server = createServer(SERVER, serve).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return `https://good.test:${(server.address() as AddressInfo).port}`;
}

/** A sender to which every name is on loopback. */
export function loopbackSender(t: Test, options: Partial<HttpSenderOptions> = {}): Sender {
    const sender = httpSender({
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]),
        ...options,
    });
    t.teardown(() => sender.close());
    return sender;
}
