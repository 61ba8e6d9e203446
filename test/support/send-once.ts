// Sends one message to the URL given, whose host is taken to be on loopback, and prints the outcome.
import { egressGuard } from '../../lib/egress/guard.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import type { Trust } from '../../lib/webhooks/setting-values.ts';

const [, , url = '', trust = 'strict'] = process.argv;
const sender = httpSender({
    guard: egressGuard({ allow: ['127.0.0.0/8'] }),
    lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]),
});
console.log(JSON.stringify(await sender.send({ exporterId: 'once', url, trust: trust as Trust, headers: [], body: Buffer.from('{}') })));
await sender.close();
