import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/index.ts';
import { checkedHostMove, type FoundMove, targetOf } from '../../../lib/inventory/host-moves.ts';

const workspace = await memoryInventory().ensureWorkspace('lab');
const MOVE: FoundMove = { ids: [1], to: 'lab', hosts: [{ id: 1, address: '192.0.2.1' }], workspace, held: [] };

t.test('lets hosts go into a workspace that holds none of their addresses', async (t) => {
    t.equal(targetOf(MOVE), workspace);
});

t.test('names the first of what is wrong, and how many more there are', async (t) => {
    const ids = Array.from({ length: 13 }, (_, index) => index + 1);
    t.throws(() => targetOf({ ...MOVE, ids }), {
        code: 'NOT_FOUND',
        field: 'ids',
        message: 'There is no host with the id 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more',
    });
    t.throws(() => targetOf({ ...MOVE, held: ['192.0.2.1', '192.0.2.2'] }), {
        code: 'CONFLICT',
        message: 'The workspace "lab" holds 192.0.2.1, 192.0.2.2 already',
    });
    t.throws(() => targetOf({ ...MOVE, hosts: [...MOVE.hosts, { id: 7, address: '192.0.2.1' }] }), {
        code: 'CONFLICT',
        message: 'Several of the hosts have the address 192.0.2.1, and a workspace holds each once',
    });
});

t.test('takes each id once, and no more than 500', async (t) => {
    t.same(checkedHostMove({ ids: [7, 7, 2], to: ' lab ' }), { ids: [7, 2], to: 'lab' });
    const wrong: readonly [unknown, string, string?][] = [
        [Array.from({ length: 501 }, (_, index) => index + 1), 'ids'],
        [[], 'ids'],
        [[0], 'ids[0]'],
        [[2 ** 31], 'ids[0]'],
        [['x'], 'ids[0]'],
        [[1], 'to', ''],
    ];
    for (const [ids, field, to = 'lab'] of wrong) {
        t.throws(() => checkedHostMove({ ids: ids as number[], to }), { code: 'INVALID_INPUT', field });
    }
});
