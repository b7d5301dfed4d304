/**
 * Instance types as family rules, one line per family:
 *     family arch GiB-per-vCPU USD-per-vCPU-hour size...
 * A size is `name[:vCPUs][~GiB][@USD][*GPUs][+GB]`: vCPUs, memory and price follow from the name and the family's rates
 * (medium 1, large 2, xlarge 4, Nxlarge 4 N vCPUs) unless written; `+GB` is the local instance store in decimal
 * gigabytes. Prices: Linux, on demand, us-east-1. AWS publishes sizes and prices; they were compared with the
 * catalogues of vantage-sh/ec2instances.info (2015 to 2017, for families since withdrawn) and
 * aws/karpenter-provider-aws (July 2026), see docs/datasets.md, and test/integration/market/catalogue.test.ts compares
 * them again where those files are present.
 */
export const FAMILY_RULES = `
a1 arm 2 0.0255 medium large xlarge 2xlarge 4xlarge metal:16
c1 x86 0.849609 0.065 medium:2+350 xlarge:8~7+1680
c3 x86 1.875 0.0525 large+32 xlarge+80 2xlarge+160 4xlarge+320 8xlarge+640
c4 x86 1.875 0.04975 large@0.1 xlarge 2xlarge 4xlarge 8xlarge:36~60@1.591
c5 x86 2 0.0425 large xlarge 2xlarge 4xlarge 9xlarge 12xlarge 18xlarge 24xlarge metal:96
c5a x86 2 0.0385 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge
c5ad x86 2 0.043 large+75 xlarge+150 2xlarge+300 4xlarge+600 8xlarge+1200 12xlarge+1800 16xlarge+2400 24xlarge+3800
c5d x86 2 0.048 large+50 xlarge+100 2xlarge+200 4xlarge+400 9xlarge+900 12xlarge+1800 18xlarge+1800 24xlarge+3600 metal:96+3600
c5n x86 2.625 0.054 large xlarge 2xlarge 4xlarge 9xlarge~96 18xlarge~192 metal:72~192
c6a x86 2 0.03825 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal:192
c6g arm 2 0.034 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal:64@2.3066
c6gd arm 2 0.0384 medium+59 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 metal:64@2.6051+3800
c6gn arm 2 0.0432 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge
c6i x86 2 0.0425 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge metal:128
c6id x86 2 0.0504 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge+7600 metal:128+7600
c6in x86 2 0.0567 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge metal:128
c7a x86 2 0.05132 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal-48xl:192
c7g arm 2 0.03625 medium@0.0363 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal:64
c7gd arm 2 0.045359 medium@0.0454+59 large@0.0907+118 xlarge@0.1814+237 2xlarge@0.3629+474 4xlarge@0.7258+950 8xlarge@1.4515+1900 12xlarge@2.1773+2850 16xlarge@2.903+3800 metal:64@2.903+3800
c7gn arm 2 0.0624 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal:64
c7i x86 2 0.044625 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@4.7124 48xlarge metal-48xl:192
c7i-flex x86 2 0.042394 large xlarge 2xlarge 4xlarge 8xlarge@1.3566 12xlarge@2.0349 16xlarge@2.7132
c8a x86 2 0.053885 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@5.69026 48xlarge@10.3459 metal-48xl:192@10.3459
c8g arm 2 0.03988 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@4.21133 48xlarge metal-48xl:192
c8gd arm 2 0.04899 medium+59 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 metal-24xl:96@5.17334+5700 48xlarge+11400 metal-48xl:192+11400
c8i x86 2 0.046855 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal-48xl:192@9.89578 96xlarge@17.9923 metal-96xl:384@17.9923
c8i-flex x86 2 0.04451 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge
c8id x86 2 0.05544 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge+7600 48xlarge@10.6445+11400 metal-48xl:192@11.7089+11400 96xlarge@21.289+22800 metal-96xl:384@21.289+22800
cc2 x86 1.890625 0.0625 8xlarge+3360
cg1 x86 1.40625 0.13125 4xlarge*2+1680
cr1 x86 7.625 0.109375 8xlarge+240
d2 x86 7.625 0.1725 xlarge+6000 2xlarge+12000 4xlarge+24000 8xlarge:36~244@5.52+48000
d3 x86 8 0.124875 xlarge@0.499+5940 2xlarge+11880 4xlarge+23760 8xlarge@3.99552+47520
d3en x86 4 0.13143 xlarge@0.526+27960 2xlarge@1.051+55920 4xlarge@2.103+111840 6xlarge@3.154+167760 8xlarge+223680 12xlarge+335520
f1 x86 15.25 0.20625 2xlarge+470 4xlarge+940 16xlarge+3760
g2 x86 1.875 0.08125 2xlarge*1+60 8xlarge*4+240
g3 x86 7.625 0.07125 4xlarge*1 8xlarge*2 16xlarge*4
g3s x86 7.625 0.1875 xlarge*1
g4ad x86 4 0.054187 xlarge@0.37853*1+150 2xlarge@0.54117*1+300 4xlarge@0.867*1+600 8xlarge@1.734*2+1200 16xlarge@3.468*4+2400
g4dn x86 4 0.0815 xlarge@0.526*1+125 2xlarge@0.752*1+225 4xlarge@1.204*1+225 8xlarge@2.176*1+900 12xlarge*4+900 16xlarge@4.352*1+900 metal:96*8+1800
g5 x86 4 0.084833 xlarge@1.006*1+250 2xlarge@1.212*1+450 4xlarge@1.624*1+600 8xlarge@2.448*1+900 12xlarge@5.672*4+3800 16xlarge@4.096*1+1900 24xlarge@8.144*4+3800 48xlarge@16.288*8+7600
g5g arm 2 0.042875 xlarge@0.42*1 2xlarge@0.556*1 4xlarge@0.828*1 8xlarge*1 16xlarge*2 metal:64*2
g6 x86 4 0.069533 xlarge@0.8048*1+250 2xlarge@0.9776*1+450 4xlarge@1.3232*1+600 8xlarge@2.0144*1+900 12xlarge@4.6016*4+3760 16xlarge@3.3968*1+1880 24xlarge@6.6752*4+3760 48xlarge@13.3504*8+7520
g6e x86 8 0.156933 xlarge@1.861*1+250 2xlarge@2.24208*1+450 4xlarge@3.00424*1+600 8xlarge@4.52856*1+900 12xlarge@10.4926*4+3800 16xlarge@7.57719*1+1900 24xlarge@15.0656*4+3800 48xlarge@30.1312*8+7600
gr6 x86 8 0.0962 4xlarge*1+600 8xlarge@2.4464*1+900
h1 x86 4 0.0585 2xlarge+2000 4xlarge+4000 8xlarge+8000 16xlarge+16000
hi1 x86 3.78125 0.19375 4xlarge+2048
hs1 x86 7.3125 0.2875 8xlarge:16+48000
i2 x86 7.625 0.213125 xlarge@0.853+800 2xlarge+1600 4xlarge+3200 8xlarge+6400
i3 x86 7.625 0.078 large+475 xlarge+950 2xlarge+1900 4xlarge+3800 8xlarge+7600 16xlarge+15200 metal:72~512@4.992+15200
i3en x86 8 0.113 large+1250 xlarge+2500 2xlarge+5000 3xlarge+7500 6xlarge+15000 12xlarge+30000 24xlarge+60000 metal:96+60000
i4g arm 8 0.07722 large+468 xlarge+937 2xlarge+1875 4xlarge+3750 8xlarge+7500 16xlarge+15000
i4i x86 8 0.085797 large@0.172+468 xlarge@0.343+937 2xlarge@0.686+1875 4xlarge@1.373+3750 8xlarge@2.746+7500 12xlarge@4.118+11250 16xlarge@5.491+15000 24xlarge@8.2368+22500 metal:128@10.982+30000 32xlarge@10.9824+30000
i7i x86 8 0.09438 large@0.1888+468 xlarge@0.3775+937 2xlarge@0.755+1875 4xlarge@1.5101+3750 8xlarge@3.0202+7500 12xlarge@4.5302+11250 16xlarge@6.0403+15000 24xlarge@9.0605+22500 metal-24xl:96@9.6204+22500 48xlarge@18.121+45000 metal-48xl:192@19.2408+45000
i8g arm 8 0.0858 large+468 xlarge+937 2xlarge+1875 4xlarge+3750 8xlarge+7500 12xlarge+11250 16xlarge+15000 24xlarge+22500 metal-24xl:96@9.06048+22500 48xlarge+45000 metal-48xl:192@18.121+45000
im4gn arm 4 0.090948 large+937 xlarge+1875 2xlarge+3750 4xlarge+7500 8xlarge+15000 16xlarge+30000
inf1 x86 2 0.049177 xlarge@0.228 2xlarge@0.362 6xlarge@1.18 24xlarge@4.721
inf2 x86 4 0.067611 xlarge@0.7582 8xlarge@1.96786 24xlarge@6.49063 48xlarge@12.9813
is4gen arm 6 0.144075 medium@0.14408+937 large+1875 xlarge+3750 2xlarge+7500 4xlarge+15000 8xlarge+30000
m1 x86 3.75 0.0875 small:1~1.699219@0.044+160 medium~3.699219@0.087+410 large+840 xlarge+1680
m2 x86 8.549805 0.1225 xlarge:2+420 2xlarge:4+850 4xlarge:8+1680
m3 x86 3.75 0.0665 medium@0.067+4 large+32 xlarge+80 2xlarge+160
m4 x86 4 0.05 large xlarge 2xlarge 4xlarge 10xlarge 16xlarge
m5 x86 4 0.048 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal:96
m5a x86 4 0.043 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge
m5ad x86 4 0.0515 large+75 xlarge+150 2xlarge+300 4xlarge+600 8xlarge+1200 12xlarge+1800 16xlarge+2400 24xlarge+3600
m5d x86 4 0.0565 large+75 xlarge+150 2xlarge+300 4xlarge+600 8xlarge+1200 12xlarge+1800 16xlarge+2400 24xlarge+3600 metal:96+3600
m5dn x86 4 0.068 large+75 xlarge+150 2xlarge+300 4xlarge+600 8xlarge+1200 12xlarge+1800 16xlarge+2400 24xlarge+3600 metal:96+3600
m5n x86 4 0.0595 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal:96
m5zn x86 4 0.082583 large@0.1652 xlarge@0.3303 2xlarge@0.6607 3xlarge 6xlarge@1.982 12xlarge@3.9641 metal:48@4.3605
m6a x86 4 0.0432 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal:192
m6g arm 4 0.0385 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal:64@2.6112
m6gd arm 4 0.0452 medium+59 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 metal:64@3.0664+3800
m6i x86 4 0.048 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge metal:128
m6id x86 4 0.059325 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge+7600 metal:128+7600
m6idn x86 4 0.07956 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge@10.1837+7600 metal:128@10.1837+7600
m6in x86 4 0.069615 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge metal:128
m7a x86 4 0.05796 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge@11.1283 metal-48xl:192@11.1283
m7g arm 4 0.0408 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal:64
m7gd arm 4 0.053392 medium@0.0534+59 large@0.1068+118 xlarge@0.2136+237 2xlarge@0.4271+474 4xlarge@0.8543+950 8xlarge@1.7086+1900 12xlarge@2.5628+2850 16xlarge@3.4171+3800 metal:64@3.4171+3800
m7i x86 4 0.0504 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@5.32224 48xlarge metal-48xl:192
m7i-flex x86 4 0.04788 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge
m8a x86 4 0.06086 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@6.42682 48xlarge@11.6851 metal-48xl:192@11.6851
m8g arm 4 0.04488 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@4.73933 48xlarge metal-48xl:192
m8gd arm 4 0.05766 medium+59 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 metal-24xl:96@6.0889+5700 48xlarge@11.0707+11400 metal-48xl:192@11.0707+11400
m8i x86 4 0.05292 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge@10.1606 metal-48xl:192@10.1606 96xlarge@20.3213 metal-96xl:384@20.3213
m8i-flex x86 4 0.050275 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge
m8id x86 4 0.06526 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge+7600 48xlarge@12.5299+11400 metal-48xl:192@12.5299+11400 96xlarge@25.0598+22800 metal-96xl:384@25.0598+22800
p2 x86 15.25 0.225 xlarge*1 8xlarge*8 16xlarge~732*16
p3 x86 7.625 0.3825 2xlarge*1 8xlarge*4 16xlarge*8
p3dn x86 8 0.325125 24xlarge*8+1800
p4d x86 12 0.228725 24xlarge*8+8000
p4de x86 12 0.285907 24xlarge@27.4471*8+8000
p5 x86 10.666667 0.286667 4xlarge~256@6.88*1+3800 48xlarge@55.04*8+30400
p5en x86 10.666667 0.329667 48xlarge@63.296*8+30400
r3 x86 7.625 0.083125 large~15@0.166+32 xlarge@0.333+80 2xlarge+160 4xlarge+320 8xlarge+640
r4 x86 7.625 0.0665 large xlarge 2xlarge 4xlarge 8xlarge 16xlarge
r5 x86 8 0.063 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal:96
r5a x86 8 0.0565 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge
r5ad x86 8 0.0655 large+75 xlarge+150 2xlarge+300 4xlarge+600 8xlarge+1200 12xlarge+1800 16xlarge+2400 24xlarge+3600
r5b x86 8 0.0745 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal:96@7.8672
r5d x86 8 0.072 large+75 xlarge+150 2xlarge+300 4xlarge+600 8xlarge+1200 12xlarge+1800 16xlarge+2400 24xlarge+3600 metal:96+3600
r5dn x86 8 0.0835 large+75 xlarge+150 2xlarge+300 4xlarge+600 8xlarge+1200 12xlarge+1800 16xlarge+2400 24xlarge+3600 metal:96+3600
r5n x86 8 0.0745 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal:96
r6a x86 8 0.0567 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal:192
r6g arm 8 0.0504 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal:64@3.4191
r6gd arm 8 0.0576 medium+59 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 metal:64@3.9076+3800
r6i x86 8 0.063 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge metal:128
r6id x86 8 0.0756 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge+7600 metal:128+7600
r6idn x86 8 0.097695 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge@12.505+7600 metal:128@12.505+7600
r6in x86 8 0.087165 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge@11.1571 metal:128@11.1571
r7a x86 8 0.076075 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal-48xl:192
r7g arm 8 0.05355 medium@0.0536 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal:64
r7gd arm 8 0.068041 medium@0.068+59 large@0.1361+118 xlarge@0.2722+237 2xlarge@0.5443+474 4xlarge@1.0886+950 8xlarge@2.1773+1900 12xlarge@3.2659+2850 16xlarge@4.3546+3800 metal:64@4.3546+3800
r7i x86 8 0.06615 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@6.98544 48xlarge metal-48xl:192
r7iz x86 8 0.093 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal-16xl:64@6.5472 32xlarge metal-32xl:128@13.0944
r8a x86 8 0.07988 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@8.43533 48xlarge@15.337 metal-48xl:192@15.337
r8g arm 8 0.05891 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@6.2209 48xlarge@11.3107 metal-48xl:192@11.3107
r8gd arm 8 0.07348 medium+59 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 metal-24xl:96@7.75949+5700 48xlarge@14.1082+11400 metal-48xl:192@14.1082+11400
r8i x86 8 0.06946 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge@13.3363 metal-48xl:192@14.67 96xlarge@26.6726 metal-96xl:384@26.6726
r8i-flex x86 8 0.065985 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge
r8id x86 8 0.08316 large+118 xlarge+237 2xlarge+474 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 24xlarge+5700 32xlarge@10.6445+7600 48xlarge@15.9667+11400 metal-48xl:192@17.5634+11400 96xlarge@31.9334+22800 metal-96xl:384@31.9334+22800
t1 x86 0.612305 0.02 micro:1
t2 x86 4 0.0464 nano:1~0.5@0.0058 micro:1~1@0.0116 small:1~2@0.023 medium:2~4@0.0464 large xlarge 2xlarge
t3 x86 4 0.0416 nano:2~0.5@0.0052 micro:2~1@0.0104 small:2~2@0.0208 medium:2~4@0.0416 large xlarge 2xlarge
t3a x86 4 0.0376 nano:2~0.5@0.0047 micro:2~1@0.0094 small:2~2@0.0188 medium:2~4@0.0376 large xlarge 2xlarge
t4g arm 4 0.0336 nano:2~0.5@0.0042 micro:2~1@0.0084 small:2~2@0.0168 medium:2~4@0.0336 large xlarge 2xlarge
trn1 x86 4 0.167969 2xlarge+474 32xlarge@21.5+7600
trn1n x86 4 0.193594 32xlarge@24.78+7600
x1 x86 15.25 0.104203 16xlarge@6.669+1920 32xlarge@13.338+3840
x1e x86 30.5 0.2085 xlarge 2xlarge 4xlarge 8xlarge 16xlarge 32xlarge
x2gd arm 16 0.0835 medium+59 large+118 xlarge+237 2xlarge+475 4xlarge+950 8xlarge+1900 12xlarge+2850 16xlarge+3800 metal:64@5.8784+3800
x2idn x86 16 0.104203 16xlarge@6.669+1900 24xlarge@10.0035+2850 32xlarge@13.338+3800 metal:128@13.338+3800
x2iedn x86 32 0.208406 xlarge@0.83363+118 2xlarge+237 4xlarge+475 8xlarge@6.669+950 16xlarge@13.338+1900 24xlarge@20.007+2850 32xlarge@26.676+3800 metal:128@26.676+3800
x2iezn x86 32 0.2085 2xlarge 4xlarge 6xlarge 8xlarge 12xlarge metal:48
x8g arm 16 0.0977 medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal-24xl:96@10.3171 48xlarge metal-48xl:192
x8i x86 16 0.109415 large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge@10.5038 32xlarge@14.0051 48xlarge@21.0077 metal-48xl:192@23.1085 64xlarge@28.0102 96xlarge@48.7444 metal-96xl:384@48.7444
z1d x86 8 0.093 large+75 xlarge+150 2xlarge+300 3xlarge+450 6xlarge+900 12xlarge+1800 metal:48+1800
`;

/**
 * On-demand prices before a price cut. The first line that names the type and whose instant lies after the asked one
 * holds; otherwise FAMILY_RULES. AWS lowered c4, m4 and r3 on 2016-01-01; c4, m4 and t2 on 2016-12-01; m4 again on
 * 2017-05-01. The last cut of t2 lies between the snapshots of 2017-08-07 and today and is put at the start of
 * per-second billing.
 */
export const EARLIER_PRICES: readonly { readonly untilMs: number; readonly prices: string }[] = [
  {
    untilMs: Date.UTC(2016, 0, 1),
    prices:
      'c4.large 0.11 c4.xlarge 0.22 c4.2xlarge 0.441 c4.4xlarge 0.882 c4.8xlarge 1.763 ' +
      'm4.large 0.126 m4.xlarge 0.252 m4.2xlarge 0.504 m4.4xlarge 1.008 m4.10xlarge 2.52 ' +
      'r3.large 0.175 r3.xlarge 0.35 r3.2xlarge 0.7 r3.4xlarge 1.4 r3.8xlarge 2.8',
  },
  {
    untilMs: Date.UTC(2016, 11, 1),
    prices:
      'c4.large 0.105 c4.xlarge 0.209 c4.2xlarge 0.419 c4.4xlarge 0.838 c4.8xlarge 1.675 ' +
      'm4.large 0.12 m4.xlarge 0.239 m4.2xlarge 0.479 m4.4xlarge 0.958 m4.10xlarge 2.394 m4.16xlarge 3.83 ' +
      't2.nano 0.0065 t2.micro 0.013 t2.small 0.026 t2.medium 0.052 t2.large 0.104',
  },
  {
    untilMs: Date.UTC(2017, 4, 1),
    prices: 'm4.large 0.108 m4.xlarge 0.215 m4.2xlarge 0.431 m4.4xlarge 0.862 m4.10xlarge 2.155 m4.16xlarge 3.447',
  },
  {
    untilMs: Date.UTC(2017, 9, 2),
    prices:
      't2.nano 0.0059 t2.micro 0.012 t2.small 0.023 t2.medium 0.047 t2.large 0.094 t2.xlarge 0.188 t2.2xlarge 0.376',
  },
];
