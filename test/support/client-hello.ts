import { once } from 'node:events';
import { Duplex, PassThrough } from 'node:stream';
import { connect } from 'node:tls';

/** What a client of TLS says first. */
export async function clientHello(): Promise<Buffer> {
    const said = new PassThrough();
    const socket = new Duplex({ read() {}, write: (chunk: Buffer, _, done) => void said.write(chunk, done) });
    connect({ socket }).on('error', () => {});
    const [hello] = await once(said, 'data');
    return hello;
}
