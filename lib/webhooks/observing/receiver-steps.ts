import type { Attempt } from '../deliveries/delivery-store.ts';
import type { Exporter } from '../exporters/exporter.ts';
import type { Exporters } from '../exporters/exporter-operations.ts';
import type { Outcome, OutcomeCode, Timings } from '../outcomes/outcome.ts';
import { outcomeWords } from '../outcomes/outcome-words.ts';
import type { Finding, FindingPart } from './finding.ts';

/** What a test says of an exporter and of each step on the way to its receiver. */
export async function receiverFindings(exporter: Exporter, test: Exporters['test']): Promise<readonly Finding[]> {
    const { id, state, collector, url } = exporter;
    const own =
        state === 'running'
            ? ok('exporter', `It runs, for ${url}`)
            : warning('exporter', `It is ${state}, for ${url}`, 'Start it: it gets nothing but tests');
    const { attempt } = await test(id);
    return [own, ...stepFindings(attempt, collector)];
}

/** In their order, each with its time: a certificate is judged at the end of the handshake. */
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

/** What is no step on the way to the receiver, but a fault on this side of it. */
const OWN_PARTS: Readonly<Partial<Record<OutcomeCode, FindingPart>>> = {
    invalid_exporter: 'settings',
    token_failed: 'access token',
    interrupted: 'answer',
};

/** The part that made the outcome what it is: the step that failed, or what is no step. */
function decidingPart(outcome: Outcome): FindingPart {
    const { code, status } = outcome;
    return code === 'delivered' || status !== null ? 'answer' : (OWN_PARTS[code] ?? failedStep(outcome));
}

const CONNECTING = /^(?:address|connect|proxy)_/;

/** A step has a time however it ended. Of a handshake that came to its end there is a certificate, which may be what was refused. */
function failedStep({ code, timings, fingerprint }: Outcome): Step {
    if (code.startsWith('dns_')) {
        return 'resolve';
    }
    if (CONNECTING.test(code) || timings.connect === null) {
        return 'connect';
    }
    // The demand for a client certificate may come behind the handshake, and says nothing of the receiver's own.
    if ((timings.tls !== null && fingerprint === null) || code === 'tls_client_cert_required') {
        return 'tls';
    }
    return code.startsWith('tls_') ? 'certificate' : 'first byte';
}

/** How many steps came to a good end: those before the one that failed; what is no step may have come up behind any that has a time. */
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

/** When people should hear that a certificate ends, in milliseconds: those that are renewed by machines are so a month before. */
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
