import type { Host, HostInput } from './host.ts';

/** A host before its store has given it ids and times. */
export type NewHost = Omit<Host, 'id' | 'workspace_id' | 'created_at' | 'updated_at'>;

/** What a field that an import leaves open starts as; `name` falls back to the address. */
const DEFAULTS: Omit<NewHost, 'address' | 'name'> = {
    mac: '',
    comm: null,
    state: 'alive',
    os_name: '',
    os_flavor: '',
    os_sp: '',
    os_lang: null,
    arch: null,
    purpose: '',
    info: null,
    comments: null,
    scope: null,
    virtual_host: null,
    note_count: 0,
    vuln_count: 0,
    service_count: 0,
    host_detail_count: 0,
    exploit_attempt_count: 0,
    cred_count: 0,
    nexpose_data_asset_id: null,
    history_count: 0,
    detected_arch: null,
};

/** All fields of a host that a workspace sees for the first time; `service_count` is the store's to keep. */
export function newHost(input: HostInput): NewHost {
    return { ...DEFAULTS, name: input.address, ...hostFields(input) };
}

/** The fields of the host itself that the import gives, to lay over what the workspace holds. */
export function hostFields({ services: _services, ...fields }: HostInput): Omit<HostInput, 'services'> {
    return fields;
}
