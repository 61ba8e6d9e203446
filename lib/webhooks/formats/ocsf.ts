import { isObject } from '../../schema-validation.ts';
import { investigationCreated, testEvent } from '../events/event-kinds.ts';
import type { Format, FormatEvent } from './format.ts';
import { itemsOf, type Severity, type Summary, summaryOf, textOf } from './summary.ts';
import { writtenTime } from './written-time.ts';

/* Detection findings of the [Open Cybersecurity Schema Framework](https://schema.ocsf.io). */

/** The version of the schema that findings are written for; they say so in `metadata.version`. */
export const OCSF_VERSION = '1.8.0';

const CATEGORY = 2;
const CLASS = CATEGORY * 1000 + 4;

const CREATE = { id: 1, name: 'Create' } as const;
/** The activity of a `test`, which stands for no real finding. */
const TEST = { id: 99, name: 'Test' } as const;

const SEVERITIES: Readonly<Record<Severity, readonly [id: number, caption: string]>> = {
    unknown: [0, 'Unknown'],
    info: [1, 'Informational'],
    low: [2, 'Low'],
    medium: [3, 'Medium'],
    high: [4, 'High'],
    critical: [5, 'Critical'],
};

/** A fraction of a second with more than milliseconds. */
const FINER = /:\d\d\.\d{3}0*[1-9]/;

/** What the schema takes for an address. */
const EMAIL = /^[a-zA-Z0-9!#$%&'*+\-/=?^_`{|}~.]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9.-]+$/;

/** A finding for each event; what has no place in the schema is under `unmapped`. */
export const ocsf: Format = {
    name: 'ocsf',
    contentType: 'application/json; charset=UTF-8',
    make(event, { vendor }) {
        const { kind, id } = event;
        const summary = summaryOf(event);
        const { title, text, link, severity, time } = summary;
        const activity = kind === testEvent.name ? TEST : CREATE;
        const [severityId, severityName] = SEVERITIES[severity];
        const { evidences, unmapped } = partsOf(event, summary);
        const finding = {
            activity_id: activity.id,
            activity_name: activity.name,
            category_uid: CATEGORY,
            category_name: 'Findings',
            class_uid: CLASS,
            class_name: 'Detection Finding',
            type_uid: CLASS * 100 + activity.id,
            type_name: `Detection Finding: ${activity === CREATE ? CREATE.name : 'Other'}`,
            severity_id: severityId,
            severity: severityName,
            time: time.getTime(),
            message: title,
            ...(activity === CREATE && { status_id: 1, status: 'New' }),
            ...(kind === investigationCreated.name && { is_alert: true }),
            metadata: {
                version: OCSF_VERSION,
                uid: id,
                event_code: kind,
                logged_time: event.time.getTime(),
                product: { name: 'Webhook Data Exporter', vendor_name: vendor },
            },
            finding_info: {
                uid: textOf(event.body.investigationId) ?? id,
                title,
                ...(text !== null && { desc: text }),
                ...(link !== null && { src_url: link }),
                created_time: time.getTime(),
            },
            ...(evidences.length > 0 && { evidences }),
            ...(Object.keys(unmapped).length > 0 && { unmapped }),
        };
        return { body: JSON.stringify(finding) };
    },
};

type Fields = Readonly<Record<string, unknown>>;

interface Parts {
    readonly evidences: readonly Fields[];
    readonly unmapped: Fields;
}

function partsOf(event: FormatEvent, summary: Summary): Parts {
    const { timestamp, title, description, link, severity: _, ...others } = event.body;
    // kept beside a finding that could not carry it as it is
    const originals = {
        ...(summary.title !== title && title !== undefined && { title }),
        ...(summary.text !== description && description !== undefined && { description }),
        ...(summary.link !== link && link !== undefined && { link }),
        ...(summary.severity === 'unknown' && event.body.severity !== undefined && { severity: event.body.severity }),
        ...(timestamp !== undefined && !isWholeTime(textOf(timestamp)) && { timestamp }),
    };
    if (event.kind !== investigationCreated.name) {
        return { evidences: [], unmapped: { ...originals, ...others } };
    }

    const { investigationId: __, actors, ...unmapped } = others;
    const users = itemsOf(event.body, 'users').map(userEvidence);
    const assets = itemsOf(event.body, 'assets').map(assetEvidence);
    const left = (parts: readonly Split[]): readonly Fields[] => parts.map(({ rest }) => rest);
    return {
        evidences: [...users, ...assets].map(({ evidence }) => evidence),
        unmapped: {
            ...originals,
            ...unmapped,
            ...(isObject(actors) && { actors: { ...actors, users: left(users), assets: left(assets) } }),
        },
    };
}

/** Whether milliseconds, which is what a finding has, say the whole time. */
function isWholeTime(text: string | null): boolean {
    return text !== null && writtenTime(text) !== null && !FINER.test(text);
}

/** An evidence, and the fields of its source that the schema has no place for. */
interface Split {
    readonly evidence: Fields;
    readonly rest: Fields;
}

function userEvidence({ name, distinguishedName, emails, ...rest }: Fields): Split {
    const addresses = (textOf(emails) ?? '').split(',').filter((address) => address !== '');
    const email = addresses.length === 1 && EMAIL.test(addresses[0] as string) ? addresses[0] : undefined;
    const user = {
        name,
        ...(email !== undefined && { email_addr: email }),
        ...(distinguishedName !== undefined && { ldap_person: { ldap_dn: distinguishedName } }),
    };
    return { evidence: { user }, rest: { ...rest, ...(email === undefined && { emails }) } };
}

function assetEvidence({ hostname, fqdn, shortname, ...rest }: Fields): Split {
    return {
        evidence: { device: { hostname: fqdn ?? hostname, name: shortname, type_id: 0, type: 'Unknown' } },
        rest: { hostname, ...rest },
    };
}
