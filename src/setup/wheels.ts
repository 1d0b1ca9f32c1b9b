/** @module The wheels that a setup is made of: pinned to one file each, by the hash of its content. Nothing else is ever unpacked. */

export type SetupKind = 'native' | 'cuda';

export interface Wheel {
  /** The project on the package index. */
  readonly project: string;
  readonly version: string;
  /** Of the file [bytes]. */
  readonly bytes: number;
  readonly sha256: string;
}

/** One version for both kinds, so that a training on the CPU tests what a GPU will run. */
export const TENSORFLOW = '2.21.0';

/** What the files are for: pip is told so, whatever Python it runs under. The library in them does not depend on Python. */
export const TARGET = {
  python: '3.11',
  abi: 'cp311',
  platforms: ['manylinux_2_27_x86_64', 'manylinux_2_25_x86_64', 'manylinux2014_x86_64', 'manylinux2010_x86_64'],
} as const;

const CPU: readonly Wheel[] = [
  wheel('tensorflow-cpu', TENSORFLOW, 273829956, '2b847d217b02ee7731ed91431daf3250daa0196c3c94614d23be27232e6e5b6c'),
];

/** `tensorflow` and what its extra `and-cuda` names: CUDA 12.9 and cuDNN 9. */
const GPU: readonly Wheel[] = [
  wheel('tensorflow', TENSORFLOW, 572440367, '9056fbc9ba04235810b71ae6cbd958a196e8804fb53bbcffbf3e23b56155f124'),
  wheel(
    'nvidia-cublas-cu12',
    '12.9.3.13',
    581217458,
    'd7d51055f161b317c7105ddaae90e71eda059026074ffef93cf7cde2886bfe72',
  ),
  wheel(
    'nvidia-cuda-cupti-cu12',
    '12.9.79',
    10814997,
    '096bcf334f13e1984ba36685ad4c1d6347db214de03dbb6eebb237b41d9d934f',
  ),
  wheel(
    'nvidia-cuda-nvcc-cu12',
    '12.9.86',
    40546229,
    '5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0',
  ),
  wheel(
    'nvidia-cuda-nvrtc-cu12',
    '12.9.86',
    89568129,
    '210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4',
  ),
  wheel(
    'nvidia-cuda-runtime-cu12',
    '12.9.79',
    3493179,
    '25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3',
  ),
  wheel(
    'nvidia-cudnn-cu12',
    '9.28.0.42',
    716538495,
    '9ff58b7f36dacd0a93e89f8f2957b52466889217963701daa15e577317cfa375',
  ),
  wheel('nvidia-cufft-cu12', '11.4.1.4', 200877592, 'c67884f2a7d276b4b80eb56a79322a95df592ae5e765cf1243693365ccab4e28'),
  wheel(
    'nvidia-curand-cu12',
    '10.3.10.19',
    68295626,
    '49b274db4780d421bd2ccd362e1415c13887c53c214f0d4b761752b8f9f6aa1e',
  ),
  wheel(
    'nvidia-cusolver-cu12',
    '11.7.5.82',
    338117415,
    '15da72d1340d29b5b3cf3fd100e3cd53421dde36002eda6ed93811af63c40d88',
  ),
  wheel(
    'nvidia-cusparse-cu12',
    '12.5.10.65',
    366465088,
    '73060ce019ac064a057267c585bf1fd5a353734151f87472ff02b2c5c9984e78',
  ),
  wheel('nvidia-nccl-cu12', '2.32.3', 351526311, 'bb94b2348e4861d5e8aa00b36c3d12d9bdf9c6369b82cbb723de0b582280a21c'),
  wheel(
    'nvidia-nvjitlink-cu12',
    '12.9.86',
    39748338,
    'e3f1171dbdc83c5932a45f0f4c99180a70de9bd2718c1ab77d14104f6d7147f9',
  ),
];

export const WHEELS: Readonly<Record<SetupKind, readonly Wheel[]>> = { native: CPU, cuda: GPU };

/** What of all wheels is unpacked and kept [bytes], measured. */
export const KEPT_BYTES: Readonly<Record<SetupKind, number>> = { native: 854_000_000, cuda: 5_600_000_000 };

/** Libraries, the headers that the addon includes, and what XLA calls to compile for a GPU. */
export function isNeeded(path: string): boolean {
  return (
    /^tensorflow\/libtensorflow_(cc|framework)\.so\.2$/.test(path) ||
    /^tensorflow\/include\/(tensorflow\/c|tensorflow\/core\/platform|tsl\/platform|xla\/tsl\/c)\/.*\.h$/.test(path) ||
    /^nvidia\/\w+\/lib\/[^/]+\.so[.\d]*$/.test(path) ||
    /^nvidia\/cuda_nvcc\/(bin\/ptxas|nvvm\/libdevice\/)/.test(path)
  );
}

export function totalBytes(wheels: readonly Wheel[]): number {
  return wheels.reduce((sum, { bytes }) => sum + bytes, 0);
}

function wheel(project: string, version: string, bytes: number, sha256: string): Wheel {
  return { project, version, bytes, sha256 };
}
