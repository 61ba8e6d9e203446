import type { Attempt } from '../deliveries/delivery-store.ts';
import type { Exporter } from '../exporters/exporter.ts';
import type { Exporters } from '../exporters/exporter-operations.ts';
import type { Outcome, OutcomeCode, Timings } from '../outcomes/outcome.ts';
import { outcomeWords } from '../outcomes/outcome-words.ts';
import type { Finding, FindingPart } from './finding.ts';

/** What a test says of an exporter and of each step on the way to its receiver. */
export async function receiverFindings(exporter: Exporter, test: Exporters['test']): Promise<readonly Finding[]> {
    const { id, state, collector, url } = exporter;
    const exporterFinding =
        state === 'running'
            ? ok('exporter', `It runs, for ${url}`)
            : warning('exporter', `It is ${state}, for ${url}`, 'Start it: it gets nothing but tests');
    const { attempt } = await test(id);
    return [exporterFinding, ...stepFindings(attempt, collector)];
}

/** The steps in their order, each with the phase whose time it has. A certificate is judged at the end of the TLS handshake. */
const STEPS = [
    ['resolve', 'dns'],
    ['connect', 'connect'],
    ['tls', 'tls'],
    ['certificate', 'tls'],
    ['first byte', 'firstByte'],
] as const satisfies readonly (readonly [FindingPart, keyof Timings])[];

type Step = (typeof STEPS)[number][0];

/** What the attempt of a test says of each step; those behind the one that failed were not reached, and are not listed. */
function stepFindings(attempt: Attempt | null, collector: string): readonly Finding[] {
    if (attempt === null || attempt.outcome === null) {
        const advice = `Start a process that sends for the collector ${collector}, or wait for those that do`;
        return [wrong('answer', 'The test was not sent in time', advice)];
    }

    const { outcome } = attempt;
    const { code, status, detail } = outcome;
    const part = decidingPart(outcome);
    const reached = STEPS.slice(0, reachedSteps(part, outcome)).map((step) => reachedStep(step, outcome));
    const { advice } = outcomeWords(code, status);
    return [...reached, advice === null ? ok(part, detail) : wrong(part, detail, `${advice}; see ${code} in docs/outcomes.md`)];
}

/** Outcomes that no step to the receiver has decided, since the cause is on this side, with the part that each belongs to. */
const PARTS_OF_THIS_SIDE: Readonly<Partial<Record<OutcomeCode, FindingPart>>> = {
    invalid_exporter: 'settings',
    invalid_message: 'settings',
    token_failed: 'access token',
    interrupted: 'answer',
};

/** The part that decided the outcome: the step that failed, or a part that is no step. */
function decidingPart(outcome: Outcome): FindingPart {
    const { code, status } = outcome;
    return code === 'delivered' || status !== null ? 'answer' : (PARTS_OF_THIS_SIDE[code] ?? failedStep(outcome));
}

const CONNECTING = /^(?:address|connect|proxy)_/;

/** The step that failed; it has its time all the same. A fingerprint tells that the receiver has presented a certificate, which may be what was refused. */
function failedStep({ code, timings, fingerprint }: Outcome): Step {
    if (code.startsWith('dns_')) {
        return 'resolve';
    }
    if (CONNECTING.test(code) || timings.connect === null) {
        return 'connect';
    }
    // The demand for a client certificate may come after the handshake, and says nothing about the receiver's own certificate.
    if ((timings.tls !== null && fingerprint === null) || code === 'tls_client_cert_required') {
        return 'tls';
    }
    return code.startsWith('tls_') ? 'certificate' : 'first byte';
}

/** How many steps succeeded: those before the one that failed; all of them if the receiver has answered; else (no step decided) those that have a time. */
function reachedSteps(part: FindingPart, { code, status, timings }: Outcome): number {
    const failed = STEPS.findIndex(([step]) => step === part);
    if (failed !== -1) {
        return failed;
    }
    return code === 'delivered' || status !== null ? STEPS.length : STEPS.findLastIndex(([, phase]) => timings[phase] !== null) + 1;
}

function reachedStep([step, phase]: (typeof STEPS)[number], outcome: Outcome): Finding {
    const milliseconds = outcome.timings[phase];
    if (milliseconds === null) {
        return ok(step, 'Not needed');
    }
    if (step === 'certificate') {
        return certificateFinding(outcome);
    }
    return ok(step, `Took ${milliseconds} ms${step === 'connect' && outcome.address !== null ? ` (${outcome.address})` : ''}`);
}

/**
 * Milliseconds before its end from which on a certificate is warned of. Certificates that machines renew are renewed a month before, and never
 * get so near.
 */
const ENDS_SOON = 14 * 86_400_000;

function certificateFinding({ fingerprint, certificate }: Outcome): Finding {
    const text = String(fingerprint);
    if (certificate === undefined) {
        return ok('certificate', text);
    }

    const left = Date.parse(certificate.expiresAt) - Date.now();
    const issued = `${text}, issued by ${certificate.issuer}, until ${certificate.expiresAt.slice(0, 10)}`;
    return left < ENDS_SOON ? warning('certificate', issued, 'The receiver needs a new certificate soon') : ok('certificate', issued);
}

function ok(part: FindingPart, text: string): Finding {
    return { part, state: 'ok', text, advice: null };
}

function wrong(part: FindingPart, text: string, advice: string): Finding {
    return { part, state: 'wrong', text, advice };
}

function warning(part: FindingPart, text: string, advice: string): Finding {
    return { part, state: 'warning', text, advice };
}
