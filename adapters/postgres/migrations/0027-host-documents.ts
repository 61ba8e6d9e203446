import type { Migration } from '../migrate.ts';

/**
 * A host as the API writes it, kept beside its columns, since an index of many hosts takes its time where rows become text. Whoever writes
 * a host, a trigger keeps it. Hosts of before have none until they are written next: that would rewrite a large table at once.
 */
export const hostDocuments: Migration = {
    id: '0027-host-documents',
    sql: `
alter table scanwire.hosts add column document text;

create function scanwire.write_host() returns trigger language plpgsql as $$
begin
    new.document := '{"id":' || (new.id)::text
        || ',"workspace_id":' || (new.workspace_id)::text
        || ',"created_at":' || case when new.created_at between '0001-01-01 00:00+00' and '9999-12-31 23:59:59+00'
            then '"' || to_char(new.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '+00:00"' end
        || ',"updated_at":' || case when new.updated_at between '0001-01-01 00:00+00' and '9999-12-31 23:59:59+00'
            then '"' || to_char(new.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '+00:00"' end
        || ',"address":' || to_json(host(new.address))::text
        || ',"mac":' || to_json(new.mac)::text
        || ',"comm":' || case when new.comm is null then 'null' else to_json(new.comm)::text end
        || ',"name":' || to_json(coalesce(nullif(new.name, ''), host(new.address)))::text
        || ',"state":' || to_json(new.state)::text
        || ',"os_name":' || to_json(new.os_name)::text
        || ',"os_flavor":' || to_json(new.os_flavor)::text
        || ',"os_sp":' || to_json(new.os_sp)::text
        || ',"os_lang":' || case when new.os_lang is null then 'null' else to_json(new.os_lang)::text end
        || ',"arch":' || case when new.arch is null then 'null' else to_json(new.arch)::text end
        || ',"purpose":' || to_json(new.purpose)::text
        || ',"info":' || case when new.info is null then 'null' else to_json(new.info)::text end
        || ',"comments":' || case when new.comments is null then 'null' else to_json(new.comments)::text end
        || ',"scope":' || case when new.scope is null then 'null' else to_json(new.scope)::text end
        || ',"virtual_host":' || case when new.virtual_host is null then 'null' else to_json(new.virtual_host)::text end
        || ',"note_count":' || (new.note_count)::text
        || ',"vuln_count":' || (new.vuln_count)::text
        || ',"service_count":' || (new.service_count)::text
        || ',"host_detail_count":' || (new.host_detail_count)::text
        || ',"exploit_attempt_count":' || (new.exploit_attempt_count)::text
        || ',"cred_count":' || (new.cred_count)::text
        || ',"nexpose_data_asset_id":' || case when new.nexpose_data_asset_id is null then 'null' else (new.nexpose_data_asset_id)::text end
        || ',"history_count":' || (new.history_count)::text
        || ',"detected_arch":' || case when new.detected_arch is null then 'null' else to_json(new.detected_arch)::text end || '}';
    return new;
end
$$;

create trigger documents before insert or update on scanwire.hosts for each row execute function scanwire.write_host();
`,
};
