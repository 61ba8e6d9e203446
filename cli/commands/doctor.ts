import type { Command } from 'commander';
import type { Diagnosis } from '../../lib/webhooks/observing/doctor.ts';
import { performing } from '../command.ts';
import { addConfig } from '../option-values.ts';
import { table } from '../output/table.ts';

export function define(self: Command): void {
    performing(self, async ({ options, perform }) => {
        const { exporter } = options;
        const found = exporter === undefined ? await perform('diagnose', {}) : await perform('diagnoseExporter', { id: String(exporter) });
        return { json: found, text: () => diagnosisText(found), failed: !found.healthy };
    });
    self.option('--exporter <id>', 'send a test to its receiver, and look at that step by step');
    addConfig(self);
}

/** What was found, then what to do. */
async function diagnosisText({ findings }: Diagnosis): Promise<string> {
    const found = await table(
        ['PART', 'STATE', 'FOUND'],
        findings.map(({ part, state, text }) => [part, state, text]),
        '',
    );
    const advice = findings.filter((finding) => finding.advice !== null).map(({ part, advice }) => `${part}: ${advice}.`);
    return [found, ...advice].join('\n');
}
