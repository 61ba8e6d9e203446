import type { Migration } from '../migrate.ts';
import { holdingAcceptance, orderedAcceptance } from './0012-subscriptions.ts';
import { keepingPlan } from './0046-kept-plans.ts';
import { alikeEvents } from './0047-alike-events.ts';
import { activity } from './0057-activity.ts';
import { acceptSingleBesideLate } from './0060-single.ts';

/**
 * What lists of deliveries are asked for by beside the exporter, on the deliveries themselves: the kind of the event, when it was accepted, and the
 * state in which it ended undelivered, apart from the state itself, which no index may have: each claim changes that. Of the indexes that of kinds is
 * all that each event pays for; what the others hold was not delivered.
 *
 * Deliveries from before have none of them, and are not rewritten: they are looked up by their events until they are removed, the last of them by an
 * index of its own. What was being accepted meanwhile, and waited for its end, is among them.
 */
const columns = `
alter table scanwire.deliveries
    add column kind text collate "C",
    add column accepted_at timestamptz,
    add column ended_as text;`;

/** Each by itself, beside those who write; what reads by them comes behind. */
const indexes: readonly Migration[] = (
    [
        ['kind', '(kind, seq) where kind is not null'],
        ['without_kind', '(kind, seq) where kind is null'],
        ['outcome', `(last_code, seq) where last_code <> 'delivered'`],
        ['ended_as', '(ended_as, seq) where ended_as is not null'],
        ['undelivered', `(exporter_id, seq) where last_code <> 'delivered' or stage = 'failed'`],
    ] as const
).map(([name, keys], at) => ({
    id: `0065-listed-${at + 2}-${name.replace('_', '-')}`,
    index: { name: `deliveries_${name}`, table: 'deliveries', keys },
}));

const triggers = `
create function scanwire.set_ended_as() returns trigger language plpgsql as $$
begin
    new.ended_as := case when new.state not in ('pending', 'queued', 'sending', 'delivered') then new.state end;
    return new;
end
$$;

create trigger deliveries_inserted_ended_as
before insert on scanwire.deliveries
for each row
when (new.state = 'held')
execute function scanwire.set_ended_as();

create trigger deliveries_ended_as
before update of state on scanwire.deliveries
for each row
when (new.ended_as is not null or new.state not in ('pending', 'queued', 'sending', 'delivered'))
execute function scanwire.set_ended_as();
`;

/** The text with each of the parts replaced, wherever it stands. @throws Error for a part that is not there. */
export function changed(text: string, ...changes: readonly (readonly [part: string, by: string])[]): string {
    return changes.reduce((before, [part, by]) => {
        if (!before.includes(part)) {
            throw new Error(`Cannot replace "${part}": it is not there`);
        }
        return before.replaceAll(part, by);
    }, text);
}

/** The function of this name, as an earlier migration made it, in place of that one. @throws Error for one that it did not make. */
export function replacing(sql: string, name: string): string {
    const begins = [`create or replace function scanwire.${name}(`, `create function scanwire.${name}(`].map((begin) => sql.indexOf(begin));
    const from = begins.find((at) => at >= 0);
    if (from === undefined) {
        throw new Error(`Cannot replace the function ${name}: it is not there`);
    }
    const made = sql.slice(from, sql.indexOf('\n$$;\n', from) + 5);
    return made.replace(/^create function/, 'create or replace function');
}

const INSERT = 'insert into scanwire.deliveries (event_id, exporter_id,';
const INSERT_KIND = 'insert into scanwire.deliveries (event_id, kind, accepted_at, exporter_id,';
const OF_EVENT = 'select i.index, i.id as event_id, i.exporter_id is not null as single';

const withKinds = (sql: string): string =>
    changed(
        sql,
        [OF_EVENT, OF_EVENT.replace('event_id,', 'event_id, i.kind,')],
        ['select c.index, c.event_id, false,', 'select c.index, c.event_id, c.kind, false,'],
        [INSERT, INSERT_KIND],
        ['t.event_id, t.exporter_id, at,', 't.event_id, t.kind, at, t.exporter_id, at,'],
    );

const alike = changed(
    replacing(alikeEvents.sql, 'accept_alike_events'),
    ['    roomy uuid[];', '    kinds text[];\n    roomy uuid[];'],
    ['    insert into scanwire.events (id', '    with stored as (\n    insert into scanwire.events (id'],
    [
        'body text, owner text);',
        `body text, owner text)
    returning id, kind
    )
    select array_agg(s.id), array_agg(s.kind) into ids, kinds from stored s;`,
    ],
    [INSERT, INSERT_KIND],
    ['i.id, e.id, at, 1,', 'i.id, i.kind, at, e.id, at, 1,'],
    [
        'from unnest(ids) with ordinality i (id, index)\n        cross join',
        'from unnest(ids, kinds) with ordinality i (id, kind, index)\n        cross join',
    ],
);

const acceptSingle = changed(
    acceptSingleBesideLate,
    [INSERT.replace('(', 'as d ('), INSERT_KIND.replace('(', 'as d (')],
    ['event_id, e.id, at, 1,', 'event_id, event_kind, at, e.id, at, 1,'],
);

/** Of a delivery `d`. */
const ACCEPTED_AT =
    '(case when d.accepted_at is null then (select v.created_at from scanwire.events v where v.id = d.event_id) else d.accepted_at end)';

const firstSince = changed(
    replacing(activity.sql, 'first_delivery_since'),
    ['v.created_at <', `${ACCEPTED_AT} <`],
    ['            join scanwire.events v on v.id = d.event_id\n', ''],
);

const slices = changed(
    replacing(activity.sql, 'activity'),
    ['d.finished_at, d.event_id', `d.finished_at, ${ACCEPTED_AT} as accepted_at`],
    ['l.finished_at - v.created_at', 'l.finished_at - l.accepted_at'],
    ['        from looked_at l\n        join scanwire.events v on v.id = l.event_id\n', '        from looked_at l\n'],
);

/** What events are accepted by, as it replaces what there was. */
export const listedAcceptance: readonly string[] = [
    withKinds(holdingAcceptance),
    keepingPlan('accept_events'),
    keepingPlan('accept_chosen_events'),
    withKinds(changed(orderedAcceptance, ['create function', 'create or replace function'])),
    keepingPlan('accept_ordered_events'),
    alike,
    acceptSingle,
];

const functions = [triggers, ...listedAcceptance, firstSince, slices].join('\n');

/** What is accepted between the first step and the last has the columns and nothing in them, as all from before. */
export const listed: readonly Migration[] = [
    { id: '0065-listed-1-columns', sql: columns },
    ...indexes,
    { id: '0065-listed-7-functions', sql: functions },
];
