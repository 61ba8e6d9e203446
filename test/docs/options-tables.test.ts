import { readFileSync } from 'node:fs';
import t from 'tap';
import { limitsSchema } from '../../lib/protect/connection-limits.ts';
import { newExporterSchema } from '../../lib/webhooks/exporters/exporter.ts';
import { optionsSchema as adminConsole } from '../../plugins/admin-console/options.ts';
import { optionsSchema as httpsRecordSchema } from '../../plugins/https-record-schema/options.ts';
import { optionsSchema as mcp } from '../../plugins/mcp/index.ts';
import { optionsSchema as metasploitData } from '../../plugins/metasploit-data/index.ts';
import { optionsSchema as metrics } from '../../plugins/metrics/index.ts';
import { optionsSchema as restApiV2 } from '../../plugins/rest-api-v2/options.ts';
import { optionsSchema as tokenAuth } from '../../plugins/token-auth/options.ts';
import { IN_TURN, MAX_WAITING, PER_SECOND } from '../../plugins/token-auth/refusal-pacing.ts';
import { optionsSchema as webhookAuth } from '../../plugins/webhook-auth/options.ts';
import { optionsSchema as webhookExporter } from '../../plugins/webhook-exporter/options.ts';
import { documentedOptions, schemaOptions } from '../support/options-table.ts';

const pages = {
    'docs/admin-console.md': adminConsole,
    'docs/https-record-schema.md': httpsRecordSchema,
    'docs/metrics.md': metrics,
    'docs/token-auth.md': tokenAuth,
    'docs/mcp.md': mcp,
    'docs/metasploit-data.md': metasploitData,
    'docs/rest-api-v2.md': restApiV2,
    'docs/webhook-exporter.md': webhookExporter,
    'docs/receivers.md': webhookAuth,
};

for (const [page, schema] of Object.entries(pages)) {
    t.test(`${page} has the options of the schema, with their defaults`, async (t) => {
        const documented = await documentedOptions(page);
        // Joi puts options that others depend on first.
        t.strictSame(documented.toSorted(), schemaOptions(schema).toSorted());
    });
}

t.test('docs/exposing.md has the limits of connections', async (t) => {
    const documented = await documentedOptions('docs/exposing.md', 'Connections');
    t.strictSame(documented.toSorted(), schemaOptions(limitsSchema).toSorted());
});

t.test('docs/exposing.md has the pace of refusals', (t) => {
    const page = readFileSync('docs/exposing.md', 'utf8').replaceAll('\n', ' ');
    const [, inTurn, perSecond] = /(\d+) in each turn of the event loop and at most ([\d,]+) a second/.exec(page) ?? [];
    const [, waiting] = /where ([\d,]+) wait the connection is ended/.exec(page) ?? [];
    t.strictSame(
        [inTurn, perSecond, waiting],
        [IN_TURN, PER_SECOND, MAX_WAITING].map((number) => number.toLocaleString('en')),
    );
    t.end();
});

t.test('docs/webhook-exporter.md has the settings of an exporter', async (t) => {
    const documented = await documentedOptions('docs/webhook-exporter.md', 'Settings');
    t.strictSame(documented.toSorted(), schemaOptions(newExporterSchema).toSorted());
});
