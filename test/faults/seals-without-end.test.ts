import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t from 'tap';

/** Megabytes that a ring may take which seals, opens or refuses more than twice as much, for something else each time. */
const MEMORY = 64;

/** What somebody does who makes exporters, API keys or previews without end. */
const WORK: Readonly<Record<string, string>> = {
    seals: 'own.seal("secret", context)',
    opens: 'own.open(other.seal("secret", "c"), "c"); own.open(other.seal("secret", context), context)',
    'is given what it cannot open': 'try { own.open("v1.k.AAAA", context) } catch {}',
};

for (const [name, work] of Object.entries(WORK)) {
    t.test(`a ring that ${name} for ever new purposes takes bounded memory`, async (t) => {
        const ring = new URL('../../lib/keys/key-ring.js', import.meta.url).href;
        const script = `import(${JSON.stringify(ring)}).then(({ keyRing }) => {
            const keys = { k: Buffer.alloc(32, 1) };
            const [own, other] = [keyRing({ current: 'k', keys }), keyRing({ current: 'k', keys })];
            for (let index = 0; index < 50_000; index += 1) {
                const context = Buffer.from(index + ' '.repeat(3_000)).toString('latin1');
                ${work};
            }
        })`;
        const worker = new Worker(script, { eval: true, resourceLimits: { maxOldGenerationSizeMb: MEMORY } });
        const [code] = await once(worker, 'exit').catch((error: Error) => [error.message]);
        t.equal(code, 0);
    });
}
