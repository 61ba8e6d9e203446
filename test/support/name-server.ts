import { createSocket } from 'node:dgram';
import dnsPacket from 'dns-packet';

/**
 * What a name server does with a question.
 *
 * - A list: answers with these addresses, those of the family that was asked for.
 * - `unknown`: the name does not exist (NXDOMAIN).
 * - `fails`: it cannot tell (SERVFAIL).
 * - `refuses`: it does not answer this client (REFUSED).
 * - `silent`: no answer ever comes.
 * - `garbage`: a packet that is no answer.
 * - `truncates`: says that the answer does not fit, and never gives it over TCP.
 */
export type NameServerBehaviour = readonly string[] | 'unknown' | 'fails' | 'refuses' | 'silent' | 'garbage' | 'truncates';

export interface NameServer {
    /** As `nameServers` of a resolver takes it. */
    readonly address: string;
    /** The questions that came, as `A name` or `AAAA name`. */
    readonly questions: readonly string[];
    close(): Promise<void>;
}

const RCODES = { unknown: 3, fails: 2, refuses: 5 } as const;

const AUTHORITATIVE_TRUNCATED = dnsPacket.AUTHORITATIVE_ANSWER | dnsPacket.TRUNCATED_RESPONSE;

/**
 * A name server on loopback. `behaviour` is asked for each question, so that it may change its mind.
 *
 * @param ttl Seconds for which its answers hold.
 */
export async function nameServer(behaviour: (name: string, type: 'A' | 'AAAA') => NameServerBehaviour, ttl = 60): Promise<NameServer> {
    const questions: string[] = [];
    const socket = createSocket('udp4');
    socket.on('message', (packet, { port, address }) => {
        const { id, questions: [question] = [] } = dnsPacket.decode(packet);
        if (id === undefined || question === undefined) {
            return;
        }

        const type = question.type as 'A' | 'AAAA';
        questions.push(`${type} ${question.name}`);
        const does = behaviour(question.name, type);
        if (does !== 'silent') {
            socket.send(does === 'garbage' ? Buffer.from('garbage') : answer(id, { ...question, type }, does, ttl), port, address);
        }
    });
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));

    return {
        address: `127.0.0.1:${socket.address().port}`,
        questions,
        close: () => new Promise((resolve) => socket.close(() => resolve())),
    };
}

function answer(
    id: number,
    { name, type }: { readonly name: string; readonly type: 'A' | 'AAAA' },
    does: Exclude<NameServerBehaviour, 'silent' | 'garbage'>,
    ttl: number,
): Buffer {
    const addresses = typeof does === 'string' ? [] : does.filter((address) => (type === 'A') === !address.includes(':'));
    const rcode = typeof does === 'string' && does !== 'truncates' ? RCODES[does] : 0;
    return dnsPacket.encode({
        type: 'response',
        id,
        flags: (does === 'truncates' ? AUTHORITATIVE_TRUNCATED : dnsPacket.AUTHORITATIVE_ANSWER) | rcode,
        questions: [{ type, name }],
        answers: addresses.map((data) => ({ type, name, ttl, data })),
    });
}
