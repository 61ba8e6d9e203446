// Sends before, while and after it has used up the handles of its process, to an address and to a name, and prints what came of it.
import { closeSync, openSync } from 'node:fs';
import { egressGuard } from '../../lib/egress/guard.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';

const [, , nameServer = '', port = ''] = process.argv;
const guard = egressGuard({ allow: ['127.0.0.0/8'] });
const sender = httpSender({ guard, nameServers: [nameServer], connectTimeout: 2_000, dnsTimeout: 2_000 });

/** A name of its own each time, and an exporter: nothing that is kept saves a handle. */
async function outcomes(time: string): Promise<readonly string[]> {
    const urls = [`http://127.0.0.1:${port}/`, `http://${time}.test:${port}/`];
    const sent = urls.map((url) => sender.send({ exporterId: time, url, trust: 'strict', headers: [], body: Buffer.from('{}') }));
    return (await Promise.all(sent)).map(({ code }) => code);
}

const before = await outcomes('before');
const handles: number[] = [];
for (let code = ''; code === ''; ) {
    try {
        handles.push(openSync(process.execPath, 'r'));
    } catch (error) {
        code = String((error as NodeJS.ErrnoException).code);
    }
}

const meanwhile = await outcomes('meanwhile');
for (const handle of handles) {
    closeSync(handle);
}

process.stdout.write(JSON.stringify({ before, meanwhile, after: await outcomes('after') }));
await sender.close();
