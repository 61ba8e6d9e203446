import type { Migration } from '../migrate.ts';

const block = `
create function scanwire.address_block(address inet) returns inet language sql immutable strict parallel safe
as $$ select network(set_masklen(address, case family(address) when 4 then 16 else 48 end))::inet $$;
`;

/** The hosts of each /16, of version 6 each /48, in the order of their ids, so that a page of a large block of addresses is read in its order. */
export const addressBlocks: readonly Migration[] = [
    { id: '0069-address-blocks-1-function', sql: block },
    {
        id: '0069-address-blocks-2-index',
        index: { name: 'hosts_by_block', table: 'hosts', keys: '(workspace_id, scanwire.address_block(address), id)' },
    },
];
