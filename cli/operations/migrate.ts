import type { Migrated } from '../system.ts';
import { type Operation, operation } from './operation.ts';

/** Opening the stores migrates them; this says where they stand. */
export const migrate: Operation<object, Migrated> = operation({
    name: 'migrate',
    method: 'POST',
    path: '/migrations',
    creates: true,
    run: (system) => system.migrate(),
});
