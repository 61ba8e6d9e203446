import { isIP } from 'node:net';
import type { Command } from 'commander';
import { MAX_RESPONSE_BYTES } from '../../lib/records/capture/capture.ts';
import { command, commander } from '../command.ts';
import { wholeNumber } from '../option-values.ts';

/** Adds the command `records capture`. */
export function addCapture(records: Command): void {
    const capture = command(records, 'capture [target...]', 'make records from live HTTPS endpoints: URL or host:port', async (call) => {
        const [{ runCapture }, { reportText }] = await Promise.all([
            import('../records/capture-run.ts'),
            import('../records/capture-report.ts'),
        ]);
        const report = await runCapture(call);
        return {
            json: report,
            text: () => reportText(report),
            failed: report.failed > 0 || report.stopped,
            aside: call.options.output === undefined,
        };
    });
    capture
        .option('--targets <file>', 'list of targets, one in each line, - for stdin')
        .option('--output <file>', 'file for the records, stdout when absent')
        .option('--resume', 'go on with the output of a run before: capture what it does not hold')
        .option('--gzip', 'pack the records, as for a name in .gz')
        .option('--concurrency <n>', 'captures under way at once', wholeNumber(1, 1000), 64)
        .option('--timeout <seconds>', 'most time for one of them', wholeNumber(1, 3600), 15)
        .option('--max-bytes <n>', 'cut longer answers', wholeNumber(1, MAX_RESPONSE_BYTES), MAX_RESPONSE_BYTES)
        .option('--connect-to <address>', 'address of the targets that name none', address)
        .option('--accept-encoding <value>', 'send this header, for example gzip')
        .option('--user-agent <value>', 'send this in place of scanwire and its version')
        .hook('preAction', (_, self) => assertUsage(self));
}

async function assertUsage(self: Command): Promise<void> {
    const { targets, output, resume } = self.opts();
    if (self.args.length === 0 && targets === undefined) {
        self.error("error: missing required argument 'target', or --targets");
    }

    if (resume === true && output === undefined) {
        self.error("error: option '--resume' needs '--output <file>'");
    }

    const { parseTarget } = await import('../../lib/records/capture/target.ts');
    for (const [index, text] of self.args.entries()) {
        try {
            parseTarget(text);
        } catch (error) {
            self.error(`error: ${error instanceof Error ? error.message.replace('Target', `Target ${index + 1}`) : String(error)}`);
        }
    }
}

function address(text: string): string {
    if (isIP(text) === 0 || text.includes('%')) {
        throw new commander.InvalidArgumentError('It must be an IP address.');
    }

    return text;
}
