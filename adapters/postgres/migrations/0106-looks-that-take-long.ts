import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * Beside an old snapshot, as that of a dump, the index of what waits keeps all that has waited since. Every five seconds a hand-out passes it all, to find what
 * marks do not tell of, and the others wait for it: after an hour it takes a second. Now one that comes to its end takes a twentieth of the time at most. One that was cut off at the
 * time limit of a statement was begun again by the next hand-out, and so on: nothing was handed out any more. Now it rests for a minute.
 */

const sequence = `
-- From when on a hand-out may look through all that waits again, in milliseconds since 1970.
create sequence scanwire.look_through_from minvalue 0 start 0;
grant select, update on sequence scanwire.look_through_from to public;
`;

const handOut = rewritten('hand_out_due_deliveries', [
    ['    raised bigint;\n', '    raised bigint;\n    look_from bigint;\n'],
    [
        `    looks_through := turn / 5000 <> raised / 5000;
    if turn / 1000 <> raised / 1000 then
        perform scanwire.raise_waiting_marks(at, looks_through);
        perform setval('scanwire.marks_raised', greatest(0, turn));
    end if;
`,
        `    select l.last_value into look_from from scanwire.look_through_from l;
    -- In the past of what was raised last, the clock was set back.
    looks_through := turn / 5000 <> raised / 5000 and (turn >= look_from or turn < raised);
    if turn / 1000 <> raised / 1000 then
        -- First, and kept though this statement may be cut off.
        perform setval('scanwire.marks_raised', greatest(0, turn));
        if looks_through then
            perform setval('scanwire.look_through_from', greatest(0, turn + 60000));
        end if;
        perform scanwire.raise_waiting_marks(at, looks_through);
        if looks_through then
            -- What follows takes as long once more.
            perform setval('scanwire.look_through_from', greatest(0, turn + 40 * floor(extract(epoch from scanwire.now() - at) * 1000)::bigint));
        end if;
    end if;
`,
    ],
]);

export const looksThatTakeLong: Migration = { id: '0106-looks-that-take-long', sql: [sequence, handOut].join('\n') };
