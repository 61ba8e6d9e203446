import type { Command } from 'commander';
import type { ExportFormat } from '../../lib/inventory/export.ts';
import { printablePieces } from '../../lib/printable.ts';
import { performing } from '../command.ts';
import { writeOutput } from '../output/write-output.ts';

const STDOUT = '-';

export function define(self: Command): void {
    performing(self, async ({ options, download }) => {
        const output = String(options.output);
        const file = output === STDOUT ? undefined : output;
        const query = { workspace: String(options.workspace), format: options.format as ExportFormat };
        let bytes = 0;
        const counted = async function* (pieces: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array | string> {
            for await (const piece of pieces) {
                bytes += Buffer.byteLength(piece);
                yield piece;
            }
        };
        // A file is as it is; what scans bring must not command a terminal.
        const written = file === undefined && process.stdout.isTTY ? printablePieces : counted;
        await download('exportWorkspace', query, (pieces) => writeOutput(written(pieces), file, { replaces: options.force === true }));
        return file === undefined
            ? undefined
            : { json: { file, bytes }, text: () => `Exported ${query.workspace} to ${file}: ${bytes.toLocaleString('en')} bytes` };
    });
    self.option('--workspace <name>', 'workspace to export', 'default')
        .option('--format <format>', 'jsonl, which import takes back whole; csv; nmap-xml', 'jsonl')
        .option('--output <file>', 'file to write, - for stdout', STDOUT)
        .option('--force', 'replace the file where there is one');
}
