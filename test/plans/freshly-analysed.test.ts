import { testEveryState } from './every-state.ts';

testEveryState('freshly');
