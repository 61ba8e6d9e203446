import { prepared } from '../prepared.ts';
import { isIn } from './crowded-hosts.ts';
import { closedBetween, givenServices, INPUT, serviceOf } from './import-batches.ts';
import { COUNTED, type Counted, noteTouched, verdict } from './verdicts.ts';

/** Asked once, and not for every row: a file that brings nothing new stages nothing. */
export const SOMETHING_STAGED: string = '(select exists (select from scanwire.staged_hosts where workspace_id = $3))';

/** A service as it is shown, with what a batch before has laid over it. */
export const SHOWN_SERVICE: string = `(
    select services.id, services.generation, coalesce(staged.state, services.state) as state, coalesce(staged.name, services.name) as name,
        case when staged.service_id is null then services.info else staged.info end as info
    from ${serviceOf('given', 'given')} services
    left join lateral (
        select * from scanwire.staged_services where ${SOMETHING_STAGED} and host_id = services.host_id and service_id = services.id offset 0
    ) staged on true offset 0
)`;

/** Whether one is new, or shown otherwise. */
export const SERVICE_DIFFERS: string = `known.id is null
    or given.state is distinct from known.state
    or named and (given.name, given.info) is distinct from (known.name, known.info)
    or not named and known.name = '' and coalesce(given.guessed_name, '') <> ''`;

/**
 * Hosts from `$8` on are new, and have no services to look for.
 *
 * @param services Those that are given.
 */
function staging(services: string): string {
    return `with ${INPUT}, judged as materialized (
    select host_id, host_generation, host_updated_at, port, proto, given.state, host_index, index, known.id as service_id, known.generation,
        case when named then given.name else coalesce(nullif(known.name, ''), given.guessed_name, '') end as name,
        case when named then given.info else known.info end as info, ${verdict({
            isNew: 'known.id is null',
            differs: SERVICE_DIFFERS,
            gone: `given.state = 'closed' and known.state <> 'closed'`,
        })}
    from ${services} given left join lateral ${SHOWN_SERVICE} known on given.host_id < $8
    where told or known.state <> 'closed'
), different as (
    select * from judged where verdict in ('changed', 'gone')
), staged as (
    insert into scanwire.staged_services (host_id, service_id, updated_at, state, name, info)
    select host_id, service_id, $7, state, name, info from different where generation < $5
    on conflict (host_id, service_id) do update set state = excluded.state, name = excluded.name, info = excluded.info
), changed as (
    update scanwire.services set state = different.state, name = different.name, info = different.info
    from different where ${isIn('services.id', 'different.service_id')} and different.generation = $5
), created as (
    insert into scanwire.services (generation, host_id, created_at, updated_at, port, proto, state, name, info)
    select $5, host_id, $7, $7, port, proto, state, name, info from judged where verdict = 'new' order by host_index, index
), ${noteTouched('service', false)}
select ${COUNTED}, array(select host_id from touched where added > 0) as grown, array(select host_id from touched) as touched from judged`;
}

/** Stores the services of a slice of a batch but for those that {@link STAGE_CLOSED} does, of the hosts whose indexes are `$9`. */
export const STAGE_SERVICES: string = prepared(staging(givenServices('true', '$9::integer[]')));

/** Those that a host of many says are closed with others, behind the port `$9` and up to `$10`. */
export const STAGE_CLOSED: string = staging(closedBetween('$9', '$10'));

/** What the services of a batch have come to. */
export interface StagedServices extends Counted {
    /** Ids of hosts that were there before and have more of them now. */
    readonly grown: readonly number[];
    /** Ids of those that have new or other ones. */
    readonly touched: readonly number[];
}
