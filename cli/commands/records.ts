import type { Command } from 'commander';
import { jsonText } from '../../lib/printable.ts';
import { MEND_PROFILES, type MendProfile } from '../../lib/records/mend-record.ts';
import { MAX_LINE_BYTES, MAX_LINE_LIMIT } from '../../lib/records/record.ts';
import { recordJsonSchema } from '../../lib/records/record-schema.ts';
import { type Answer, type Call, command } from '../command.ts';
import { openInput } from '../input-file.ts';
import { wholeNumber } from '../option-values.ts';
import { followed } from '../output/progress.ts';
import { assertWritable, writeOutput } from '../output/write-output.ts';
import * as operations from '../records/record-files.ts';
import { type ReadingLimits, type RecordsReport, reportText } from '../records/record-files.ts';
import { addCapture } from './records-capture.ts';

export function define(records: Command): void {
    const check = command(records, 'check <file>', 'check a file of records, one in each line, - for stdin', async (call) => {
        const { source } = await openFiles(call);
        return reported(call, await operations.check(source, limitsOf(call)));
    });

    const mend = command(records, 'mend <file>', 'write the records of an older file as they should be, - for stdin', rewritten);
    mend.addOption(mend.createOption('--profile <name>', 'what is mended').choices(MEND_PROFILES).default('import'));

    const read = command(records, 'read <file>', 'print what is in the records of a file, a line for each, - for stdin', async (call) => {
        const { source } = await openFiles(call, true);
        const report = await operations.read(source, { ...limitsOf(call), json: call.json, body: call.options.body === true });
        return { ...(await reported(call, report)), aside: true };
    });
    read.option('--body', 'print the body of each response, too');

    const write = command(records, 'write <file>', 'write the good records of a file, keys in order, - for stdin', rewritten);

    for (const subcommand of [mend, write]) {
        subcommand
            .option('--output <file>', 'file for the records, stdout when absent')
            .option('--gzip', 'pack the records, as for a name in .gz');
    }

    for (const subcommand of [check, mend, read, write]) {
        subcommand
            .option('--max-line-bytes <n>', 'report and skip longer lines', wholeNumber(1, MAX_LINE_LIMIT), MAX_LINE_BYTES)
            .option('--report <file>', 'write the report as JSON, too');
    }

    command(records, 'schema', 'print the JSON Schema of a record', async () => ({
        json: recordJsonSchema,
        text: () => JSON.stringify(recordJsonSchema, null, 4),
    }));

    addCapture(records);
}

/**
 * The bytes of the input, and whether the output goes to the same file. No bar among lines that go to the same terminal. Where the
 * results go is looked at first: a large file is not read in vain.
 */
async function openFiles({ args: [file = ''], options, json }: Call, prints = false) {
    const { output, report } = options as { readonly output?: string; readonly report?: string };
    const inPlace = await assertWritable(file, output, report);
    const { source } = await followed(await openInput(file), !json && !(prints && process.stdout.isTTY));
    return { source, inPlace };
}

function limitsOf({ options }: Call): ReadingLimits {
    return { maxLineBytes: Number(options.maxLineBytes) };
}

/** With a profile the records are mended, too. */
async function rewritten(call: Call): Promise<Answer> {
    const { output, profile: mend } = call.options as { readonly output?: string; readonly profile?: MendProfile };
    const out = { gzip: operations.packs(call.options), printable: operations.shows(call.options), ...(output && { output }) };
    const { source, inPlace } = await openFiles(call, output === undefined);
    const options = { ...limitsOf(call), ...out, inPlace, ...(mend && { mend }) };
    const report = await operations.rewrite(source, options);
    const answer = await reported(call, report);
    const reason = inPlace ? 'its bad lines would be lost, choose another file' : 'no line is good';
    return {
        ...answer,
        aside: output === undefined,
        text: async () => `${await answer.text()}${report.written ? '' : `\n${output} is left as it was: ${reason}`}`,
    };
}

async function reported({ options }: Call, report: RecordsReport): Promise<Answer> {
    if (typeof options.report === 'string') {
        await writeOutput([Buffer.from(`${jsonText(report, 4)}\n`)], options.report);
    }

    return { json: report, text: () => reportText(report), failed: report.bad > 0 };
}
