import type { Command } from 'commander';
import { type Call, command } from '../command.ts';

/** Rounds over all that is sealed: what another process seals meanwhile is found by the next one. */
const MAX_ROUNDS = 5;

export function define(keyring: Command): void {
    command(keyring, 'rotate', 'seal everything again with the current key of the ring', async ({ json, perform }) => {
        let sealed = 0;
        for (let round = 0; round < MAX_ROUNDS; round++) {
            const done = await rotated(perform, (more) => {
                if (!json && process.stderr.isTTY) {
                    process.stderr.write(`Sealed again: ${sealed + more}\n`);
                }
            });
            sealed += done.sealed;
            if (done.sealed === 0) {
                return {
                    json: { sealed, unopened: done.unopened },
                    text: () => text(sealed, done.unopened),
                    failed: done.unopened.length > 0,
                };
            }
        }
        const unfinished = 'Something is still being sealed with another key: start every process with the same ring, then rotate again';
        return { json: { sealed, unopened: [] }, text: () => unfinished, failed: true };
    });
}

/** One round, batch by batch. */
async function rotated(
    perform: Call['perform'],
    onProgress: (sealed: number) => void,
): Promise<{ sealed: number; unopened: readonly string[] }> {
    const unopened: string[] = [];
    let sealed = 0;
    let after: string | null = null;
    do {
        const batch: Awaited<ReturnType<typeof perform<'rotateKeyRing'>>> = await perform('rotateKeyRing', after === null ? {} : { after });
        sealed += batch.sealed;
        unopened.push(...batch.unopened);
        after = batch.next;
        if (batch.sealed > 0) {
            onProgress(sealed);
        }
    } while (after !== null);
    return { sealed, unopened };
}

function text(sealed: number, unopened: readonly string[]): string {
    const left = unopened.map((context) => `Cannot be opened: ${context}`);
    const done = `Sealed again: ${sealed}. ${left.length === 0 ? 'The current key is the only one that is needed' : 'Other keys are still needed'}`;
    return [done, ...left].join('\n');
}
