import t from 'tap';
import { readsOfAlmostCrowdedHosts } from './crowded-hosts.ts';

readsOfAlmostCrowdedHosts(t, async () => {});
readsOfAlmostCrowdedHosts(t, (pool) => pool.query('analyze'));
