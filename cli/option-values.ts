import type { Command } from 'commander';
import { instantOf, spanOf, spanText } from '../lib/span.ts';
import { commander } from './command.ts';

/** Parses an option that is a whole number. @param unit May stand behind it. */
export function wholeNumber(min: number, max: number, unit = ''): (text: string) => number {
    return (text) => {
        const digits = text.endsWith(unit) ? text.slice(0, text.length - unit.length) : text;
        const value = Number(digits);
        if (!/^\d+$/.test(digits) || value < min || value > max) {
            throw new commander.InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
        }

        return value;
    };
}

/** `20/s` or `20` as 20. */
export function perSecond(text: string): number {
    return wholeNumber(1, 1000, '/s')(text);
}

/** The option `--process-name`, of commands that send. */
export function addProcessName(self: Command): void {
    const option = self.createOption('--process-name <name>', 'name of this process, the same at each start, and of no other that runs');
    self.addOption(option.env('SCANWIRE_PROCESS_NAME').argParser(processName));
}

/** The option `--pooled`, of commands that go on. */
export function addPooled(self: Command): void {
    const option = self.createOption(
        '--pooled',
        'DATABASE_URL leads to a pooler of transactions, as PgBouncer may be: nothing is prepared or listened for',
    );
    self.addOption(option.env('SCANWIRE_POOLED'));
}

/** The option `--config`, of commands that need what only the options of a host say. */
export function addConfig(self: Command): void {
    self.option('--config <file>', 'ES module whose default export are the options of the host');
}

/** As the option `processName` of a host. */
function processName(text: string): string {
    if (text.length > 255 || !/^[^\p{Cc}\p{Cs}]+$/u.test(text)) {
        throw new commander.InvalidArgumentError('It must be 1 to 255 characters, and no control characters.');
    }

    return text;
}

/** Gathers the values of an option that may be there several times. */
export function repeated(text: string, before: readonly string[] = []): readonly string[] {
    return [...before, text];
}

const DATE = /^\d{4}-\d\d-\d\d$/;

/** Parses an option that is a length of time, in milliseconds. */
export function span(text: string): number {
    const length = text === '0' ? 0 : spanOf(text);
    if (length === null) {
        throw new commander.InvalidArgumentError('It must be a span such as 30m, 2h or 7d, or 0.');
    }

    return length;
}

/** Parses an option that is several lengths of time, in milliseconds, none longer than `max`. */
export function spans(max: number): (text: string) => readonly number[] {
    return (text) =>
        text.split(',').map((one) => {
            const length = spanOf(one.trim());
            if (length === null) {
                throw new commander.InvalidArgumentError('It must be spans such as 30s, 5m, 2h or 7d, with commas between them.');
            }
            if (length > max) {
                throw new commander.InvalidArgumentError(`${one.trim()} is too long: each must be from 1s to ${spanText(max)}.`);
            }

            return length;
        });
}

/** Parses an option that is a length of time of at least so many milliseconds, or `forever`: null. */
export function spanOrForever(min: number): (text: string) => number | null {
    return (text) => {
        if (text === 'forever') {
            return null;
        }
        const length = spanOf(text);
        if (length === null || length < min) {
            throw new commander.InvalidArgumentError(`It must be forever, or a span of at least ${min / 3_600_000} h such as 7d or 90d.`);
        }
        return length;
    };
}

/** Parses an option that is a time: a span after now (1) or before (-1), or a time; a date alone is its beginning in UTC. */
export function moment(direction: 1 | -1): (text: string) => Date {
    return (text) => {
        const length = spanOf(text);
        const named = instantOf(DATE.test(text) ? `${text}T00:00Z` : text)?.getTime() ?? Number.NaN;
        const time = length === null ? named : Date.now() + direction * length;
        if (Number.isNaN(time)) {
            throw new commander.InvalidArgumentError(
                'It must be a span such as 12h or 90d, or a time such as 2027-01-31 or 2027-01-31T00:00Z.',
            );
        }

        return new Date(time);
    };
}
