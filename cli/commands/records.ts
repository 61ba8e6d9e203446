import type { Command } from 'commander';
import { MEND_PROFILES, type MendProfile } from '../../lib/records/mend-record.ts';
import { MAX_LINE_BYTES } from '../../lib/records/record.ts';
import { type Answer, type Call, command, wholeNumber } from '../command.ts';
import { openInput } from '../input.ts';
import { withProgress } from '../output/progress.ts';
import { packs, type RewriteOptions } from '../records/files.ts';
import type { ReadingLimits, RecordsReport } from '../records/report.ts';
import { addCapture } from './records-capture.ts';

/** Keeps clear of the longest text that Node can hold. */
const MAX_LINE_LIMIT = 256 * MAX_LINE_BYTES;

export function define(records: Command): void {
    const check = command(records, 'check <file>', 'check a file of records, one in each line, - for stdin', async (call) => {
        const { check } = await import('../records/files.ts');
        return reported(call, await check(await sourceOf(call), limitsOf(call)));
    });

    const mend = command(records, 'mend <file>', 'write the records of an older file as they should be, - for stdin', (call) =>
        rewritten(call, { mend: call.options.profile as MendProfile }),
    );
    mend.addOption(mend.createOption('--profile <name>', 'what is mended').choices(MEND_PROFILES).default('import'));

    const read = command(records, 'read <file>', 'print what is in the records of a file, a line for each, - for stdin', async (call) => {
        const { read } = await import('../records/files.ts');
        const report = await read(await sourceOf(call, true), { ...limitsOf(call), json: call.json, body: call.options.body === true });
        return { ...(await reported(call, report)), aside: true };
    });
    read.option('--body', 'print the body of each response, too');

    const write = command(records, 'write <file>', 'write the good records of a file, keys in order, - for stdin', (call) =>
        rewritten(call),
    );

    for (const rewriting of [mend, write]) {
        rewriting
            .option('--output <file>', 'file for the records, stdout when absent')
            .option('--gzip', 'pack the records, as for a name in .gz');
    }

    for (const reading of [check, mend, read, write]) {
        reading
            .option('--max-line-bytes <n>', 'report and skip longer lines', wholeNumber(1, MAX_LINE_LIMIT), MAX_LINE_BYTES)
            .option('--report <file>', 'write the report as JSON, too');
    }

    command(records, 'schema', 'print the JSON Schema of a record', async () => {
        const { recordJsonSchema } = await import('../../lib/records/record.ts');
        return { json: recordJsonSchema, text: () => JSON.stringify(recordJsonSchema, null, 4) };
    });

    addCapture(records);
}

/** No bar among lines that go to the same terminal. Where the results go is looked at first: a large file is not read in vain. */
async function sourceOf({ args: [file = ''], options, json }: Call, prints = false): Promise<AsyncIterable<Uint8Array>> {
    const { assertWritable } = await import('../records/write-output.ts');
    const { output, report } = options as { readonly output?: string; readonly report?: string };
    await assertWritable(file, output, report);
    return withProgress(await openInput(file), !json && !(prints && process.stdout.isTTY));
}

function limitsOf({ options }: Call): ReadingLimits {
    return { maxLineBytes: Number(options.maxLineBytes) };
}

async function rewritten(call: Call, mending: Pick<RewriteOptions, 'mend'> = {}): Promise<Answer> {
    const [{ rewrite }, { isSameFile }] = await Promise.all([import('../records/files.ts'), import('../records/write-output.ts')]);
    const { output } = call.options as Pick<RewriteOptions, 'output'>;
    const source = await sourceOf(call, output === undefined);
    const inPlace = output !== undefined && (await isSameFile(call.args[0] ?? '', output));
    const report = await rewrite(source, { ...limitsOf(call), ...mending, gzip: packs(call.options), inPlace, ...(output && { output }) });
    const answer = await reported(call, report);
    const reason = inPlace ? 'its bad lines would be lost, choose another file' : 'no line is good';
    return {
        ...answer,
        aside: output === undefined,
        text: async () => `${await answer.text()}${report.written ? '' : `\n${output} is left as it was: ${reason}`}`,
    };
}

async function reported({ options }: Call, report: RecordsReport): Promise<Answer> {
    const { reportText, saveReport } = await import('../records/report.ts');
    if (typeof options.report === 'string') {
        await saveReport(report, options.report);
    }

    return { json: report, text: () => reportText(report), failed: report.bad > 0 };
}
