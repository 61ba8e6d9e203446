import { readFileSync } from 'node:fs';
import t from 'tap';
import { codeOfError, codeOfStatus, retryAfter } from '../../../../lib/webhooks/outcomes/attempt-result.ts';
import { OUTCOME_CODES, type OutcomeCode } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { CLIENT_ERRORS, OUTCOME_WORDS, outcomeWords } from '../../../../lib/webhooks/outcomes/outcome-words.ts';

const withCode = (code: unknown): Error => Object.assign(new Error('secret text'), { code });

t.test('names what a status means', async (t) => {
    const codes: Readonly<Record<number, OutcomeCode>> = {
        200: 'delivered',
        201: 'delivered',
        204: 'delivered',
        299: 'delivered',
        300: 'redirect_refused',
        301: 'redirect_refused',
        304: 'unexpected_status',
        308: 'redirect_refused',
        399: 'unexpected_status',
        400: 'client_error',
        404: 'client_error',
        408: 'client_error',
        410: 'gone',
        425: 'client_error',
        429: 'rate_limited',
        500: 'server_error',
        503: 'server_error',
        599: 'server_error',
        600: 'unexpected_status',
        999: 'unexpected_status',
        101: 'unexpected_status',
    };
    for (const [status, code] of Object.entries(codes)) {
        t.equal(codeOfStatus(Number(status)), code, status);
    }
});

t.test('names what an error means, by its code and else by its phase', async (t) => {
    t.equal(codeOfError(withCode('EMFILE'), 'connection_reset'), 'interrupted');
    t.equal(codeOfError(withCode('ECONNREFUSED'), 'connection_reset'), 'connect_refused');
    t.equal(codeOfError(withCode('EHOSTUNREACH'), 'connection_reset'), 'connect_failed');
    t.equal(codeOfError(withCode('ETIMEDOUT'), 'connection_reset'), 'connect_timeout');
    t.equal(codeOfError(withCode('EPIPE'), 'connection_reset'), 'connection_reset');
    t.equal(codeOfError(withCode('ERR_SSL_SOMETHING_NEW'), 'connection_reset'), 'tls_failed');
    t.equal(codeOfError(withCode('ESTRANGE'), 'tls_failed'), 'tls_failed');
    t.equal(codeOfError('text', 'connection_reset'), 'connection_reset');
    t.equal(codeOfError(undefined, 'connection_reset'), 'connection_reset');
});

t.test('reads Retry-After', async (t) => {
    const now = new Date('2026-11-21T09:30:00Z');
    const day = 86_400_000;
    const values: readonly [string | string[] | undefined, number | null][] = [
        ['30', 30_000],
        [' 30 ', 30_000],
        ['0', 0],
        ['86400', day],
        ['86401', day],
        ['999999999999', day],
        ['Sat, 21 Nov 2026 09:31:00 GMT', 60_000],
        ['Saturday, 21-Nov-26 09:31:00 GMT', 60_000],
        ['Sat Nov 21 09:31:00 2026', 60_000],
        ['Sat, 21 Nov 2026 09:29:00 GMT', 0],
        ['Mon, 01 Jan 2035 00:00:00 GMT', day],
        [undefined, null],
        ['', null],
        ['abc', null],
        ['-1', null],
        ['1e9', null],
        ['1.5', null],
        ['0x10', null],
        ['30, 60', null],
        [['30', '60'], null],
        ['2026-11-21', null],
        ['Sat, 99 Nov 2026 09:31:00 GMT', null],
        ['Sat, 21 Nov 2026 09:31:00 PST', null],
        ['9'.repeat(400), null],
        ['Infinity', null],
    ];
    for (const [value, expected] of values) {
        t.equal(retryAfter(value, now), expected, JSON.stringify(value)?.slice(0, 60));
    }
});

t.test('is explained in the docs, code by code', async (t) => {
    const page = readFileSync(new URL('../../../../../docs/outcomes.md', import.meta.url), 'utf8');
    const documented = [...page.matchAll(/^\| `([a-z_]+)` +\| (.+?) +\| (.+?) +\|$/gm)];
    t.same(
        documented.map(([, code]) => code),
        [...OUTCOME_CODES],
    );
    for (const [, code = '', meaning = '', advice = ''] of documented) {
        const words = OUTCOME_WORDS[code as OutcomeCode];
        t.same(
            [meaning, advice].map((text) => text.replaceAll('`', '')),
            [words.meaning, words.advice ?? 'nothing'],
            code,
        );
    }
});

t.test('says what a client error means by its status, as the docs do', async (t) => {
    const page = readFileSync(new URL('../../../../../docs/outcomes.md', import.meta.url), 'utf8');
    const documented = [...page.matchAll(/^\| (`[0-9`, ]+`) +\| (.+?) +\| (.+?) +\|$/gm)].flatMap(([, statuses = '', ...words]) =>
        [...statuses.matchAll(/[0-9]+/g)].map(([status]) => [Number(status), ...words] as const),
    );
    t.same(
        documented.map(([status]) => status),
        [...CLIENT_ERRORS.keys()],
    );
    for (const [status, meaning, advice] of documented) {
        t.same(outcomeWords('client_error', status), { meaning, advice }, String(status));
    }
    t.same(outcomeWords('client_error', 418), OUTCOME_WORDS.client_error);
    t.same(outcomeWords('proxy_refused', 403), OUTCOME_WORDS.proxy_refused, 'of another outcome the status says nothing more');
});
