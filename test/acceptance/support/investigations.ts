import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

export function investigation(): { investigationId: string } & Record<string, unknown> {
    const investigationId = randomUUID();
    return {
        timestamp: '2026-11-21T09:30:00.000Z',
        title: 'Suspicious sign-in',
        link: `https://console.example.com/investigations/${investigationId}`,
        investigationId,
        investigationRrn: `rrn:investigation:eu:0f2b:investigation:${investigationId}`,
        actors: { users: [{ name: 'Ann', link: 'https://console.example.com/users/1', emails: '' }], assets: [] },
    };
}

/** Publishes so many investigations through the socket of a running server, some at a time. Resolves with their ids once accepted. */
export async function publishMany(data: string, count: number): Promise<readonly string[]> {
    const ids: string[] = [];
    while (ids.length < count) {
        const batch = Array.from({ length: Math.min(25, count - ids.length) }, investigation);
        await Promise.all(batch.map((body) => publish(data, body)));
        ids.push(...batch.map(({ investigationId }) => investigationId));
    }

    return ids;
}

async function publish(data: string, body: object): Promise<void> {
    const outgoing = request({
        socketPath: join(data, 'scanwire.sock'),
        method: 'POST',
        path: '/events/idr_investigation_created',
        headers: { 'content-type': 'application/json' },
        agent: false,
    });
    outgoing.end(JSON.stringify({ body }));
    const [response] = await once(outgoing, 'response');
    const answer = await text(response);
    if (response.statusCode !== 200) {
        throw new Error(`publish: ${response.statusCode} ${answer}`);
    }
}
